// One process of the cofferdam program: how it is started, how its output is read, and what its end means.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import type { Readable } from "node:stream";
import { inspect, TextDecoder } from "node:util";

import type { Invocation } from "./types.js";

/** The contract's own bounds: a line with an event, and any line. */
export const maxEventBytes = 8 * 2 ** 20;
export const maxLineBytes = 256 * 2 ** 20;
const maxStderrLine = 64 * 2 ** 10; // characters
const maxReasonBytes = 1000;

/** How every function of this package finds and starts the program. */
export interface ProcessOptions {
  /** The program; a name is looked up in PATH. Default: `cofferdam`. */
  binary?: string | undefined;
  /**
   * Variables beside the default ones, or instead of them; `undefined` takes one out. By default the program
   * gets only what it needs of this process's environment: PATH, HOME, the places of state, configuration,
   * agents and logins, and the key of the invocation's vendor. `env: process.env` gives it everything.
   */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Called with each line of standard error, such as a warning. */
  onStderr?: ((line: string) => void) | undefined;
}

/**
 * - `spawn`: the program could not be started; `cause` is the system's error
 * - `usage`: exit code 2: invocation, configuration or repository are not right, or there is no such attempt
 * - `refused`: exit code 3: policy, an attempt id that was used, a result that is not there yet
 * - `internal`: exit code 6: something must be installed, or an internal error
 * - `contract`: the output is not what the contract says, or ended before a result
 */
export type CofferdamErrorKind = "spawn" | "usage" | "refused" | "internal" | "contract";

/** There is no result, or not one to rely on. An attempt that ran and failed is no error: it has a result. */
export class CofferdamError extends Error {
  override readonly name = "CofferdamError";

  constructor(
    readonly kind: CofferdamErrorKind,
    message: string,
    /** Null when the program was not started, or ended by a signal. */
    readonly exitCode: number | null = null,
    /** The last line of standard error: what went wrong and what to do. Empty when there was none. */
    readonly stderr: string = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
}

export interface Started {
  child: ChildProcessWithoutNullStreams;
  /** Settles when the process is gone and its output is closed; rejects when it was never there. */
  exit: Promise<Exit>;
}

const places = [
  "PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "COFFERDAM_STATE_DIR", "COFFERDAM_AGENTS_DIR",
  "CLAUDE_CONFIG_DIR", "CODEX_HOME",
];
const keys: Record<NonNullable<Invocation["egress"]>, string[]> = {
  none: [],
  anthropic: ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
  openai: ["OPENAI_API_KEY"],
};

function environment(options: ProcessOptions, egress: Invocation["egress"]): NodeJS.ProcessEnv {
  const wanted = [...places, ...(keys[egress ?? "none"] ?? [])];
  const env = { ...Object.fromEntries(wanted.map((name) => [name, process.env[name]])), ...options.env };
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}

export function start(args: string[], options: ProcessOptions, egress?: Invocation["egress"]): Started {
  const binary = options.binary ?? "cofferdam";
  const failed = (cause: unknown) =>
    new CofferdamError("spawn", `cannot start ${binary}: ${messageOf(cause)}`, null, "", { cause });
  let child: ChildProcessWithoutNullStreams;
  try {
    child = spawn(binary, args, { env: environment(options, egress), stdio: "pipe" });
  } catch (cause) {
    throw failed(cause);
  }
  const exit = new Promise<Exit>((resolve, reject) => {
    let stderr = () => "";
    child.on("error", (cause) => child.pid === undefined && reject(failed(cause)));
    child.on("close", (code, signal) => resolve({ code, signal, stderr: stderr() }));
    // Without descriptors for pipes there are no streams either, whatever their type says.
    if (child.pid === undefined) return;
    stderr = watchStderr(child.stderr, options.onStderr);
  });
  exit.catch(() => {}); // whoever waits for it is told; nobody may
  // A program that ends without reading is judged by its exit, not by our failed write.
  child.stdin?.on("error", () => {});
  return { child, exit };
}

// Reads always, so that the program never waits, and keeps the last of it. Returns how to get the last line.
function watchStderr(stream: Readable, onLine: ((line: string) => void) | undefined): () => string {
  let last = "";
  let rest = "";
  const take = (line: string) => {
    if (line.trim() === "") return;
    last = line;
    onLine?.(line);
  };
  stream.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = (lines.pop() ?? "").slice(-maxStderrLine);
    lines.forEach(take);
  });
  stream.on("end", () => take(rest));
  return () => last;
}

export type JsonObject = Record<string, unknown>;

/** The lines of a stream, as JSON objects. Whoever stops reading ends the stream. */
export async function* readObjects(stream: Readable): AsyncGenerator<{ value: JsonObject; bytes: number }> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    parts.push(part);
    bytes += part.length;
    if (bytes > maxLineBytes) throw broken(`a line is longer than ${maxLineBytes} bytes`);
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      yield { value: parseObject(Buffer.concat(parts)), bytes };
      parts = [];
      bytes = 0;
      from = end + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (bytes > 0) throw broken("the output ends inside a line");
}

function parseObject(line: Buffer): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line));
  } catch (cause) {
    throw broken(`a line is not JSON: ${quoted(line)}`, cause);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw broken(`a line is not a JSON object: ${quoted(line)}`);
}

function quoted(line: Buffer): string {
  return JSON.stringify(line.subarray(0, 80).toString()) + (line.length > 80 ? "..." : "");
}

/** The output broke the contract. */
export function broken(what: string, cause?: unknown): CofferdamError {
  return new CofferdamError("contract", what, null, "", cause === undefined ? undefined : { cause });
}

/** What an end without a result means. */
export function failure(exit: Exit): CofferdamError {
  const kinds: Record<number, CofferdamErrorKind> = { 2: "usage", 3: "refused", 6: "internal" };
  const kind = kinds[exit.code ?? -1] ?? "contract";
  const end = exit.signal ? `was ended by ${exit.signal}` : `ended with exit code ${exit.code}`;
  const told = kind !== "contract" && exit.stderr !== "";
  const message = told ? exit.stderr : `cofferdam ${end} and gave no result`;
  return new CofferdamError(kind, message, exit.code, exit.stderr);
}

export function messageOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof Error ? value.message : inspect(value);
}

/** A reason as Cofferdam takes it: a line with a longer one, a NUL or a lone surrogate would be ignored. */
export function reasonText(reason: unknown): string {
  const bytes = Buffer.from(messageOf(reason).replaceAll("\0", " "), "utf8");
  let end = Math.min(bytes.length, maxReasonBytes);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1; // not inside a character
  return bytes.toString("utf8", 0, end);
}
