// The client and the real program, with a command as the agent.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { cancel, CofferdamError, run, show, type Attempt, type Outcome, type Result } from "../src/index.js";
import { collect, world } from "./world.js";

const { invocation, options, head } = world();

async function until(attempt: Attempt, type: string): Promise<void> {
  for await (const event of attempt) {
    if (event.type === type) return;
  }
  assert.fail(`no event ${type}`);
}

async function fails(promise: Promise<unknown>, kind: string, exitCode: number | null) {
  const error = await promise.then(() => assert.fail("it worked"), (reason: unknown) => reason);
  assert.ok(error instanceof CofferdamError, String(error));
  assert.equal(error.kind, kind, error.message);
  assert.equal(error.exitCode, exitCode, error.message);
  return error;
}

test("events come in order, then the result", async () => {
  const attempt = run(invocation("events", "echo hi > hi.txt"), options);
  assert.ok(attempt.pid !== undefined);
  const events = await collect(attempt);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_event, index) => index + 1));
  assert.equal(events[0]?.type, "admitted");
  assert.equal(events.at(-1)?.type, "finished");
  const result: Result = await attempt.result;
  const outcome: Outcome = result.outcome;
  assert.equal(outcome, "completed");
  assert.equal(result.change.base, head);
  assert.equal(result.change.ref, "refs/heads/cofferdam/events");
  assert.deepEqual(result.change.files, [{ path: "hi.txt", status: "added" }]);
  assert.equal(attempt.droppedEvents, 0);
  assert.throws(() => attempt[Symbol.asyncIterator](), TypeError, "the events are there once");
  assert.deepEqual(await show("events", options), result);
});

test("the result does not need a reader of the events", async () => {
  assert.equal((await run(invocation("unread", "true"), options).result).outcome, "completed");
});

test("a failed program is a result, not an error", async () => {
  const attempt = run(invocation("exit-3", "exit 3"), options);
  const result = await attempt.result;
  assert.equal(result.outcome, "failed");
  assert.equal(result.process.exit_code, 3);
});

test("an abort keeps its reason and the rest of the events", async () => {
  const controller = new AbortController();
  const attempt = run(invocation("abort", "sleep 600"), { ...options, signal: controller.signal });
  const types: string[] = [];
  for await (const event of attempt) {
    types.push(event.type);
    if (event.type === "started") controller.abort(new Error("superseded by a newer request"));
  }
  const result = await attempt.result;
  assert.equal(result.outcome, "cancelled");
  assert.equal(result.cancel?.reason, "superseded by a newer request");
  assert.equal(result.cancel?.by, "stdin");
  assert.ok(types.includes("cancel-requested") && types.at(-1) === "finished", types.join());
});

test("a signal that was aborted before the start keeps its reason", async () => {
  const signal = AbortSignal.abort("not wanted any more");
  const result = await run(invocation("abort-before", "sleep 600"), { ...options, signal }).result;
  assert.equal(result.outcome, "cancelled");
  assert.equal(result.cancel?.reason, "not wanted any more");
});

test("a reason that Cofferdam would not take is cut and mended", async () => {
  const attempt = run(invocation("long-reason", "sleep 600"), options);
  attempt.cancel(`a\0b\ud800${"\u20ac".repeat(400)}`);
  attempt.cancel("the second one does not count");
  const result = await attempt.result;
  assert.equal(result.outcome, "cancelled");
  assert.match(result.cancel?.reason ?? "", /^a b\ufffd\u20ac{331}$/);
});

test("leaving the loop cancels, and the result still comes", async () => {
  const attempt = run(invocation("break", "sleep 600"), options);
  await until(attempt, "started");
  const result = await attempt.result;
  assert.equal(result.outcome, "cancelled");
  assert.equal(result.cancel?.reason, "the client stopped reading the events");
});

test("an invalid invocation is a usage error that says where", async () => {
  const wrong = { ...invocation("wrong", "true"), prompt: 7 } as unknown as ReturnType<typeof invocation>;
  const attempt = run(wrong, options);
  const error = await fails(attempt.result, "usage", 2);
  assert.match(error.message, /\$\.prompt: must be a string/);
  assert.equal(error.stderr, error.message);
  await fails(collect(attempt), "usage", 2);
});

test("the same invocation again is the first one's events and result", async () => {
  const first = run(invocation("twice", "true"), options);
  const events = await collect(first);
  const again = run(invocation("twice", "true"), options);
  assert.deepEqual(await collect(again), events);
  assert.deepEqual(await again.result, await first.result);
});

test("an attempt id that belongs to another invocation is refused", async () => {
  await run(invocation("taken", "true"), options).result;
  await fails(run(invocation("taken", "false"), options).result, "refused", 3);
});

test("a program that is not there is an error of its own kind", async () => {
  const attempt = run(invocation("absent", "true"), { ...options, binary: "/nonexistent/cofferdam" });
  const error = await fails(attempt.result, "spawn", null);
  assert.equal((error.cause as NodeJS.ErrnoException).code, "ENOENT");
  assert.equal(attempt.pid, undefined);
  attempt.cancel();
  await fails(collect(attempt), "spawn", null);
  await fails(show("absent", { ...options, binary: "/nonexistent/cofferdam" }), "spawn", null);
});

test("large output arrives whole", async () => {
  const script = "mkdir d; seq 1 12000 | (cd d && xargs touch); yes $(printf %03000d 1) | head -n 3000";
  const attempt = run(invocation("large", script), options);
  const events = await collect(attempt);
  const result = await attempt.result;
  assert.equal(result.outcome, "completed", result.cause.detail);
  assert.ok(events.filter(({ type }) => type === "agent").length >= 1000);
  assert.equal(result.change.file_count, 12000);
  assert.equal(result.change.files.length, 10000);
});

test("two attempts run side by side", async () => {
  const script = "i=0; while [ $i -lt 20 ]; do echo $i; i=$((i+1)); done";
  const attempts = ["side-a", "side-b"].map((id) => run(invocation(id, script), options));
  const events = await Promise.all(attempts.map(collect));
  const results = await Promise.all(attempts.map(({ result }) => result));
  assert.deepEqual(results.map(({ attempt_id, outcome }) => [attempt_id, outcome]),
    [["side-a", "completed"], ["side-b", "completed"]]);
  for (const list of events) assert.equal(new Set(list.map(({ attempt_id }) => attempt_id)).size, 1);
});

test("an attempt can be cancelled and shown by its id", async () => {
  const attempt = run(invocation("by-id", "sleep 600"), options);
  for await (const event of attempt) {
    if (event.type !== "started") continue;
    await fails(show("by-id", options), "refused", 3);
    await cancel("by-id", "from elsewhere", options);
  }
  const result = await attempt.result;
  assert.equal(result.cancel?.reason, "from elsewhere");
  assert.equal(result.cancel?.by, "command");
  assert.deepEqual(await show("by-id", options), result);
  await fails(cancel("by-id", "late", options), "refused", 3);
  await fails(show("no-such", options), "usage", 2);
});

test("with cancelWithParent an attempt ends when its parent is killed", async () => {
  const program = `
    import { run } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    const [invocation, options] = JSON.parse(process.argv[1]);
    for await (const event of run(invocation, options)) console.log(event.type);`;
  const input = JSON.stringify([invocation("orphan", "sleep 600"), { ...options, cancelWithParent: true }]);
  const parent = spawn(process.execPath, ["--input-type=module", "-e", program, input],
    { stdio: ["ignore", "pipe", "inherit"] });
  let seen = "";
  for await (const text of parent.stdout.setEncoding("utf8")) {
    seen += text;
    if (seen.includes("started")) break;
  }
  await fails(show("orphan", options), "refused", 3);
  const gone = once(parent, "exit");
  parent.kill("SIGKILL");
  await gone;
  const end = Date.now() + 20_000;
  let result: Result | undefined;
  while (!result && Date.now() < end) {
    result = await show("orphan", options).catch((error: unknown) => {
      // It is still running.
      if (error instanceof CofferdamError && error.kind === "refused") return undefined;
      throw error;
    });
    await sleep(50);
  }
  assert.equal(result?.outcome, "cancelled");
  assert.equal(result.cancel?.reason, "end of input");
});
