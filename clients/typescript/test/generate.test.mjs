// The generator: each construct of JSON Schema that it knows, and the contracts' fixtures under its types.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";

import { generate } from "../scripts/generate.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const contracts = path.join(root, "../../contracts");

function folder() {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "cofferdam-generate-"));
  after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

function made(schema) {
  const schemas = folder();
  fs.writeFileSync(path.join(schemas, "two-words.schema.json"), JSON.stringify(schema));
  const text = generate(schemas);
  return text.slice(text.indexOf("export type TwoWords = ") + "export type TwoWords = ".length, -2);
}

const cases = [
  [{ type: "string", pattern: "^a$" }, "string"],
  [{ type: ["integer", "null"], minimum: 1 }, "number | null"],
  [{ const: "a" }, '"a"'],
  [{ enum: ["a", null, false] }, '"a" | null | false'],
  [{ type: "string", enum: ["a", "b"] }, '"a" | "b"'],
  [{}, "unknown"],
  [{ type: "array" }, "unknown[]"],
  [{ type: "array", items: { type: "string" }, prefixItems: [{ type: "string", minLength: 1 }] }, "string[]"],
  [{ type: "array", items: { type: ["string", "null"] } }, "Array<string | null>"],
  [{ type: "array", prefixItems: [{ type: "string" }] }, "[string, ...unknown[]]"],
  [{ type: "object" }, "Record<string, unknown>"],
  [{ type: "object", additionalProperties: false }, "Record<string, never>"],
  [{ type: "object", additionalProperties: { type: "integer" } }, "Record<string, number>"],
  [{ type: "object", patternProperties: { "^x": { type: "boolean" } } }, "Record<string, boolean>"],
  [
    { type: ["object", "null"], required: ["a"], properties: { a: { type: "string" }, "b-c": { const: 1 } } },
    '{\n  a: string;\n  "b-c"?: 1;\n} | null',
  ],
  [
    {
      additionalProperties: true,
      properties: { a: { type: "integer", default: 3, description: "Ends */ here." } },
    },
    "{\n  /**\n   * Ends *\\/ here.\n   * @default 3\n   */\n  a?: number;\n  [key: string]: unknown;\n}",
  ],
  [
    { type: "object", properties: { a: { oneOf: [{ const: 1, description: "One." }, { const: 2 }] } } },
    "{\n  a?:\n    /** One. */\n    | 1\n    | 2;\n}",
  ],
  [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] }, "string | string[]"],
  [{ $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "boolean" } } }, "boolean"],
  [
    { type: "object", properties: { a: { type: "string" } }, allOf: [{ if: { required: ["a"] }, then: {} }] },
    "{\n  a?: string;\n}",
  ],
  [
    { allOf: [{ type: "object", properties: { a: true } }, { oneOf: [{ const: 1 }, { const: 2 }] }] },
    "{\n  a?: unknown;\n} & (1 | 2)",
  ],
  [{ type: "object", properties: { a: false }, oneOf: [{ required: ["a"] }] }, "{\n  a?: never;\n}"],
];

test("each construct becomes its type", () => {
  for (const [schema, type] of cases) assert.equal(made(schema), type, JSON.stringify(schema));
});

test("what it does not know is an error, not a guess", () => {
  assert.throws(() => made({ properties: { a: { newWord: 1 } } }), /two-words.schema.json\/a: "newWord"/);
  assert.throws(() => made({ type: "text" }), /"text" is not known/);
  assert.throws(() => made({ $ref: "#/$defs/none" }), /nothing at/);
  assert.throws(() => made({ $ref: "other.json" }), /another document/);
});

test("every valid fixture has its type", () => {
  const out = folder();
  const types = { invocation: "Invocation", event: "Event", result: "Result", "plan-answer": "PlanAnswer" };
  const lines = [`import type * as types from ${JSON.stringify(path.join(root, "src/types.js"))};`];
  for (const [kind, type] of Object.entries(types)) {
    const valid = path.join(contracts, "fixtures", kind, "valid");
    for (const name of fs.readdirSync(valid)) {
      const text = fs.readFileSync(path.join(valid, name), "utf8");
      lines.push(`// ${kind}/${name}`, `{ const _: types.${type} = ${text}; }`);
    }
  }
  assert.ok(lines.length > 20);
  fs.writeFileSync(path.join(out, "fixtures.mts"), lines.join("\n"));
  const tsc = [path.join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck",
    "--target", "es2022", "--module", "nodenext", path.join(out, "fixtures.mts")];
  execFileSync(process.execPath, tsc, { cwd: out, stdio: ["ignore", 2, 2] });
});
