// A client of the cofferdam program for orchestrators: `cofferdam exec -` as a typed stream of events and a
// promise of the typed result.
import { EventQueue } from "./queue.js";
import {
  broken, CofferdamError, failure, maxEventBytes, messageOf, readObjects, reasonText, start,
  type JsonObject, type ProcessOptions, type Started,
} from "./process.js";
import type { Event, Invocation, Result } from "./types.js";

export { CofferdamError, type CofferdamErrorKind, type ProcessOptions } from "./process.js";
export type * from "./types.js";
export type Outcome = Result["outcome"];

export interface RunOptions extends ProcessOptions {
  /** A configuration file instead of the user's own. */
  config?: string | undefined;
  /** Aborting asks the attempt to end, with the signal's reason. The run goes on until its result. */
  signal?: AbortSignal | undefined;
  /** Also ask the attempt to end when this process goes away. By default it goes on, and `show` finds it. */
  cancelWithParent?: boolean | undefined;
}

const exitCodes: Record<Outcome, number> = {
  completed: 0, failed: 1, refused: 3, limit: 4, cancelled: 5, "setup-failed": 6, lost: 6,
};

/**
 * Starts an attempt. That it could not be started is thrown by the iteration and by `result`, not here.
 */
export function run(invocation: Invocation, options: RunOptions = {}): Attempt {
  return new Attempt(invocation, options);
}

/** An attempt under way: iterate over its events, await its `result`, or both. */
export class Attempt implements AsyncIterable<Event> {
  readonly id: string;
  /**
   * How it ended, whatever the outcome. Rejects with a CofferdamError when there is no result. Settles when
   * the process is gone, whether or not anybody reads the events.
   */
  readonly result: Promise<Result>;
  #started: Started | undefined;
  #queue = new EventQueue();
  #iterated = false;
  #cancelled = false;
  #settled = false;

  /** @internal */
  constructor(invocation: Invocation, options: RunOptions) {
    this.id = invocation.attempt_id;
    this.result = this.#run(invocation, options).finally(() => {
      this.#settled = true;
      this.#queue.end();
    });
    this.result.catch(() => {}); // the iteration throws it too: a caller who only iterates has handled it
  }

  /** The supervisor's process id, if it was started. */
  get pid(): number | undefined {
    return this.#started?.child.pid;
  }

  /** Events that the iteration leaves out, because they were not taken in time (`seq` then has a gap). */
  get droppedEvents(): number {
    return this.#queue.dropped;
  }

  /**
   * Asks the attempt to end; the first reason counts, and is cut at 1000 bytes. It is a request: the result
   * says what became of it.
   */
  cancel(reason: unknown = "cancelled by the client"): void {
    if (this.#cancelled || this.#settled) return;
    this.#cancelled = true;
    this.#queue.hurry();
    this.#started?.child.stdin?.write(`${JSON.stringify({ cancel: { reason: reasonText(reason) } })}\n`);
  }

  /** The events, once. Leaving the loop before the end cancels the attempt. */
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    if (this.#iterated) throw new TypeError("the events of an attempt can be iterated over once");
    this.#iterated = true;
    this.#queue.open();
    return this.#events();
  }

  async *#events(): AsyncGenerator<Event, void, undefined> {
    try {
      for (let event = await this.#queue.take(); event; event = await this.#queue.take()) yield event;
      await this.result;
    } finally {
      this.cancel("the client stopped reading the events");
      this.#queue.discard();
    }
  }

  async #run(invocation: Invocation, options: RunOptions): Promise<Result> {
    const args = ["exec", "-"];
    if (options.config !== undefined) args.push("--config", options.config);
    if (options.cancelWithParent) args.push("--cancel-on-eof");
    const text = JSON.stringify(invocation);
    this.#started = start(args, options, invocation.egress);
    const { child, exit } = this.#started;
    if (child.pid === undefined) await exit; // rejects
    // Standard input stays open for a request to cancel until the program is gone.
    child.stdin.write(`${text}\n`);
    const { signal } = options;
    const abort = () => this.cancel(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await this.#follow(this.#started);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async #follow({ child, exit }: Started): Promise<Result> {
    let result: Result | undefined;
    let fault: CofferdamError | undefined;
    try {
      result = await this.#read(child.stdout);
    } catch (error) {
      fault = error instanceof CofferdamError ? error : broken("the output cannot be read", error);
      // Nobody can follow it any more. What does not keep the contract may not know cancel lines, so it gets
      // the signal too, which means the same to Cofferdam. Never SIGKILL: that would cut a settlement off.
      this.cancel(`the client cannot read the output: ${messageOf(fault)}`);
      child.kill("SIGTERM");
    }
    const end = await exit;
    if (!fault && !result) throw failure(end);
    if (result && end.code !== exitCodes[result.outcome]) {
      const how = end.signal ?? `exit code ${end.code}`;
      fault = broken(`the outcome is "${result.outcome}", but the program ended with ${how}`);
    }
    if (fault) throw new CofferdamError(fault.kind, fault.message, end.code, end.stderr, fault);
    return result!;
  }

  async #read(stdout: Started["child"]["stdout"]): Promise<Result | undefined> {
    let result: Result | undefined;
    let seq = 0;
    for await (const { value, bytes } of readObjects(stdout)) {
      if (result) throw broken("there is output behind the result");
      const id = value["attempt_id"];
      if (id !== this.id) throw broken(`a line is of another attempt: ${messageOf(id)}`);
      if (value["schema"] === "cofferdam.result/1") {
        result = asResult(value);
      } else {
        await this.#queue.put(asEvent(value, ++seq, bytes), bytes);
      }
    }
    return result;
  }
}

// What is checked is what this client relies on; the full shape is Cofferdam's own word.
function asEvent(value: JsonObject, seq: number, bytes: number): Event {
  checkSchema(value, "cofferdam.event/1");
  if (bytes > maxEventBytes) throw broken(`an event is longer than ${maxEventBytes} bytes`);
  if (value["seq"] !== seq) throw broken(`event ${seq} has the number ${messageOf(value["seq"])}`);
  if (typeof value["type"] !== "string" || typeof value["data"] !== "object" || value["data"] === null) {
    throw broken(`event ${seq} has no type or no data`);
  }
  return value as unknown as Event;
}

function checkSchema({ schema }: JsonObject, wanted: string): void {
  if (schema !== wanted) throw broken(`a line has the schema ${messageOf(schema)}, not ${wanted}`);
}

function asResult(value: JsonObject): Result {
  checkSchema(value, "cofferdam.result/1");
  if (typeof value["outcome"] !== "string" || !Object.hasOwn(exitCodes, value["outcome"])) {
    throw broken(`the result has the outcome ${messageOf(value["outcome"])}`);
  }
  return value as unknown as Result;
}

/** The stored result of any attempt. That one is still running is an error of the kind `refused`. */
export async function show(id: string, options: ProcessOptions = {}): Promise<Result> {
  const result = asResult(await call(["show", "--json", id], options));
  if (result.attempt_id !== id) throw broken(`the result is of another attempt: ${result.attempt_id}`);
  return result;
}

/** Asks any attempt to end. Resolves when its supervisor has taken the request. */
export async function cancel(id: string, reason: unknown, options: ProcessOptions = {}): Promise<void> {
  const answer = await call(["cancel", "--json", `--reason=${reasonText(reason)}`, id], options);
  if (answer["accepted"] !== true) throw broken("the request was not accepted");
}

// A verb that prints one line.
async function call(args: string[], options: ProcessOptions): Promise<JsonObject> {
  const { child, exit } = start(args, options);
  if (child.pid === undefined) await exit; // rejects
  child.stdin.end();
  let answer: JsonObject | undefined;
  for await (const { value } of readObjects(child.stdout)) {
    if (answer) throw broken("there is more than one line");
    answer = value;
  }
  const end = await exit;
  if (end.code !== 0 || !answer) throw failure(end);
  return answer;
}
