// What the client makes of a program that does not keep the contract.
import assert from "node:assert/strict";
import test from "node:test";

import { CofferdamError, run, show, type Event, type Invocation, type RunOptions } from "../src/index.js";
import { EventQueue } from "../src/queue.js";
import { collect, fake } from "./world.js";

const invocation: Invocation = {
  schema: "cofferdam.invocation/1",
  attempt_id: "a",
  phase: "implementation",
  agent: { name: "command", argv: ["true"] },
  clone: { repository: "/nonexistent", head: "0".repeat(40) },
  prompt: "",
  deadlines: { total_ms: 60_000 },
};
const event = { schema: "cofferdam.event/1", attempt_id: "a", seq: 1, at: "", type: "started", data: {} };
const result = { schema: "cofferdam.result/1", attempt_id: "a", outcome: "completed" };

const say = (...lines: unknown[]) =>
  lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .map((line) => `console.log(${JSON.stringify(line)});\n`).join("");
const live = "setInterval(() => {}, 1000);\n";

const breaches: Array<[string, string, RegExp]> = [
  ["a line that is not JSON", say(event, "garbage") + live, /not JSON: "garbage"/],
  ["a line that is no object", say("[1]"), /not a JSON object/],
  ["bytes that are not UTF-8", `process.stdout.write(Buffer.from("22ff220a", "hex"))`, /not JSON/],
  ["no result", say(event), /exit code 0 and gave no result/],
  ["an end by a signal", `${say(event)}process.kill(process.pid, "SIGKILL");${live}`, /SIGKILL and gave no/],
  ["an event of another attempt", say({ ...event, attempt_id: "b" }) + live, /another attempt: b/],
  ["a result of another attempt", say(event, { ...result, attempt_id: "b" }) + live, /another attempt: b/],
  ["a gap in the numbers", say(event, { ...event, seq: 3 }) + live, /event 2 has the number 3/],
  ["an unknown version", say({ ...event, schema: "cofferdam.event/2" }) + live, /schema cofferdam.event\/2/],
  ["an unknown outcome", say({ ...result, outcome: "toString" }) + live, /outcome toString/],
  ["output behind the result", say(result, event) + live, /behind the result/],
  ["a result that is cut off", `process.stdout.write('{"attempt_id":"a"')`, /inside a line/],
  ["an exit code of another outcome", `${say(result)}process.exitCode = 5;`, /"completed", .* exit code 5/],
  ["an event over its bound", say({ ...event, data: { text: "x".repeat(2 ** 23) } }) + live, /longer than/],
];

for (const [name, script, message] of breaches) {
  // Those that would live on also show that the client ends what it cannot follow.
  test(`breach: ${name}`, async () => {
    const attempt = run(invocation, { binary: fake(script) });
    const kept = (error: unknown) =>
      error instanceof CofferdamError && error.kind === "contract" && message.test(error.message);
    await assert.rejects(collect(attempt), kept);
    await assert.rejects(attempt.result, kept);
  });
}

test("the control: the same lines without a breach are a result", async () => {
  const attempt = run(invocation, { binary: fake(say(event, result)) });
  assert.deepEqual(await collect(attempt), [event]);
  assert.deepEqual(await attempt.result, result);
});

test("a program that leaves without reading is judged by what it says", async () => {
  const script = `console.error("cofferdam: WARNING: first\\ncofferdam: no"); process.exitCode = 6;`;
  const lines: string[] = [];
  const large = { ...invocation, prompt: "x".repeat(2 ** 20) };
  const attempt = run(large, { binary: fake(script), onStderr: (line) => lines.push(line) });
  const no = "cofferdam: no";
  await assert.rejects(attempt.result, { kind: "internal", exitCode: 6, message: no, stderr: no });
  assert.deepEqual(lines, ["cofferdam: WARNING: first", no]);
});

test("show knows its attempt", async () => {
  const binary = fake(say(result));
  await assert.rejects(show("b", { binary }), { kind: "contract", message: /another attempt: a/ });
});

test("the program gets what it needs of the environment, and no more", async () => {
  const binary = fake(`console.error(JSON.stringify(process.env)); process.exitCode = 6;`);
  const seen = async (egress: Invocation["egress"], env?: RunOptions["env"]) => {
    const { result } = run({ ...invocation, egress: egress ?? null }, { binary, env });
    const error: CofferdamError = await result.then(() => assert.fail("it worked"), (reason) => reason);
    return JSON.parse(error.stderr) as Record<string, string>;
  };
  const before = { ...process.env };
  Object.assign(process.env, { ANTHROPIC_API_KEY: "key-a", OPENAI_API_KEY: "key-o", CLIENT_TEST_OTHER: "x" });
  try {
    const none = await seen("none");
    assert.equal(none["PATH"], process.env["PATH"]);
    const others = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLIENT_TEST_OTHER"];
    assert.deepEqual(others.filter((name) => name in none), []);
    const anthropic = await seen("anthropic");
    assert.equal(anthropic["ANTHROPIC_API_KEY"], "key-a");
    assert.ok(!("OPENAI_API_KEY" in anthropic));
    assert.equal((await seen("openai"))["OPENAI_API_KEY"], "key-o");
    const given = await seen("anthropic", { ANTHROPIC_API_KEY: undefined, CLIENT_TEST_OTHER: "y" });
    assert.ok(!("ANTHROPIC_API_KEY" in given));
    assert.equal(given["CLIENT_TEST_OTHER"], "y");
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
});

// 32 MiB of events in lines of 64 KiB.
const flood = `
  const event = ${JSON.stringify({ ...event, data: { text: "x".repeat(65536) } })};
  const line = (seq) => JSON.stringify({...event, seq}) + "\\n";
  for (let seq = 1; seq <= 512; ++seq) process.stdout.write(line(seq));
  console.log(${JSON.stringify(JSON.stringify(result))});`;

test("a slow reader gets every event", async () => {
  const attempt = run(invocation, { binary: fake(flood) });
  let count = 0;
  for await (const { seq } of attempt) {
    assert.equal(seq, ++count);
    if (count % 64 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(count, 512);
  assert.equal(attempt.droppedEvents, 0);
});

test("without a reader what does not fit is left out", async () => {
  const attempt = run(invocation, { binary: fake(flood) });
  assert.equal((await attempt.result).outcome, "completed");
  const kept = (await collect(attempt)).length;
  assert.ok(kept > 100 && kept < 200, `${kept}`);
  assert.equal(kept + attempt.droppedEvents, 512);
});

test("a reader that stands still is waited for, but not for ever", async () => {
  const queue = new EventQueue(50);
  queue.open();
  const put = () => queue.put(event as Event, 2 ** 23);
  await put();
  const before = Date.now();
  await put();
  assert.ok(Date.now() - before >= 45, "it was waited for");
  await put();
  assert.equal(queue.dropped, 2);
  assert.equal(await queue.take(), event);
  await put();
  const waiting = put();
  assert.equal(await queue.take(), event);
  await waiting;
  assert.equal(queue.dropped, 2, "a reader that came back is waited for again");
  const hurried = put();
  queue.hurry();
  await hurried;
  assert.equal(queue.dropped, 3);
});
