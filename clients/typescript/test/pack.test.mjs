// What `npm pack` makes: exactly the files that belong in it, and a package that another project can use.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = fs.mkdtempSync(path.join(os.tmpdir(), "cofferdam-pack-"));
after(() => fs.rmSync(out, { recursive: true, force: true }));
const run = (program, args, cwd) =>
  execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", 2] });

test("the package has what it needs and nothing else", () => {
  run("npm", ["pack", "--loglevel=error", "--pack-destination", out], root);
  const [archive] = fs.readdirSync(out);
  const files = run("tar", ["-tzf", path.join(out, archive)], out).trim().split("\n");
  const names = ["index", "process", "queue", "types"];
  const modules = names.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
  const wanted = ["LICENSE", "README.md", "package.json", ...modules].map((file) => `package/${file}`);
  assert.deepEqual(files.sort(), wanted.sort());
  const target = path.join(out, "node_modules/@cofferdam/client");
  fs.mkdirSync(target, { recursive: true });
  run("tar", ["-xzf", path.join(out, archive), "-C", target, "--strip-components=1"], out);
});

test("another project can import it, and is told what is wrong by its types", () => {
  const description = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  assert.equal(description.dependencies, undefined, "nothing comes with it");
  fs.writeFileSync(path.join(out, "use.mts"), `
    import { run } from "@cofferdam/client";
    import type { Event, Invocation, Outcome, PlanAnswer, Result } from "@cofferdam/client";
    export const invocation: Invocation = {
      schema: "cofferdam.invocation/1", attempt_id: "a", phase: "implementation",
      agent: { name: "command", argv: ["true"] }, clone: { repository: "/", head: "0" }, prompt: "",
      deadlines: { total_ms: 1000 },
    };
    // @ts-expect-error: a phase that there is not
    export const phase: Invocation = { ...invocation, phase: "guessing" };
    // @ts-expect-error: a key that there is not
    export const key: Invocation = { ...invocation, timeout: 3 };
    // @ts-expect-error: a key that is missing
    export const missing: Invocation = { schema: "cofferdam.invocation/1" };
    const attempt = run(invocation, { binary: "/nonexistent", signal: AbortSignal.timeout(1000) });
    const seen: Event["type"][] = [];
    try {
      for await (const event of attempt) seen.push(event.type);
      const result: Result = await attempt.result;
      const outcome: Outcome = result.outcome;
      const plan: PlanAnswer = JSON.parse(result.answer ?? "{}");
      console.log(outcome, plan);
    } catch (error) {
      console.log((error as { kind: string }).kind);
    }\n`);
  const tsc = [path.join(root, "node_modules/typescript/bin/tsc"), "--strict", "--target", "es2022",
    "--module", "nodenext", "--typeRoots", path.join(root, "node_modules/@types"), "use.mts"];
  run(process.execPath, tsc, out);
  assert.equal(run(process.execPath, ["use.mjs"], out).trim(), "spawn");
});
