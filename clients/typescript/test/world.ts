// A small world for one test file: a temporary folder with a home, a state folder and a git repository.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";

import type { Event, Invocation, RunOptions } from "../src/index.js";

function folder(): string {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "cofferdam-client-"));
  after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

export interface World {
  repository: string;
  head: string;
  options: RunOptions;
  /** An invocation of a shell script. */
  invocation(id: string, script: string): Invocation;
}

export function world(): World {
  const binary = process.env["COFFERDAM_BINARY"];
  if (!binary) throw new Error("COFFERDAM_BINARY has to name the program");
  const root = folder();
  const repository = path.join(root, "repo");
  const env = { HOME: path.join(root, "home"), COFFERDAM_STATE_DIR: path.join(root, "state") };
  fs.mkdirSync(env.HOME);
  fs.mkdirSync(env.COFFERDAM_STATE_DIR, { mode: 0o700 });
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", root, ...args], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: env.HOME, GIT_CONFIG_NOSYSTEM: "1" },
    }).trim();
  git("init", "-q", repository);
  fs.writeFileSync(path.join(repository, "README.md"), "# app\n");
  git("-C", repository, "add", ".");
  git("-C", repository, "-c", "user.name=Ada", "-c", "user.email=ada@example.net", "commit", "-qm", "Start");
  const head = git("-C", repository, "rev-parse", "HEAD");
  return {
    repository,
    head,
    options: { binary, env },
    invocation: (attempt_id, script) => ({
      schema: "cofferdam.invocation/1",
      attempt_id,
      phase: "implementation",
      agent: { name: "command", argv: ["/bin/sh", "-c", script] },
      clone: { repository, head },
      prompt: "",
      deadlines: { total_ms: 60_000 },
    }),
  };
}

/** A program that stands in for cofferdam, as the lines of a node script. */
export function fake(script: string): string {
  const file = path.join(folder(), "cofferdam");
  fs.writeFileSync(file, `#!${process.execPath}\n${script}`, { mode: 0o755 });
  return file;
}

export async function collect(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}
