// generate.mjs [--check]: writes src/types.ts from contracts/*.schema.json, one exported type for each.
// With --check nothing is written: exit status 1 when the file is not what would be written.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.join(here, "../src/types.ts");
const columns = 110;

// What says which values there are, in a way that a type can say too.
const shaping = [
  "$ref", "type", "const", "enum", "oneOf", "anyOf", "allOf",
  "properties", "required", "additionalProperties", "patternProperties", "items", "prefixItems",
];
// What a type cannot say, and Cofferdam's decoders do: bounds, patterns and conditions between keys.
const ignored = [
  "$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples", "deprecated",
  "if", "then", "else", "not", "dependentRequired", "dependentSchemas", "propertyNames", "contains",
  "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems", "pattern", "format", "minLength",
  "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
  "maxItems", "uniqueItems", "minProperties", "maxProperties", "contentMediaType", "contentEncoding",
];
const scalars = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

const literal = (value) => JSON.stringify(value);
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name));
const union = (types) => [...new Set(types)].join(" | ");
const within = (type) => (/ [|&] /.test(type) ? `(${type})` : type);

function doc(schema, indent) {
  const words = (schema.description ?? "").split(/\s+/).filter(Boolean);
  const standard = schema.default ?? undefined;
  if (standard !== undefined) words.push("\n", `@default ${literal(standard)}`);
  if (schema.deprecated) words.push("\n", "@deprecated");
  if (words.length === 0) return "";
  const lines = [""];
  for (const word of words) {
    const last = lines[lines.length - 1];
    if (word === "\n") lines.push("");
    else if (last === "") lines[lines.length - 1] = word;
    else if (indent.length + 3 + last.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  const text = lines.filter(Boolean).map((line) => line.replaceAll("*/", "*\\/"));
  const single = `${indent}/** ${text[0]} */\n`;
  if (text.length === 1 && single.length - 1 <= columns) return single;
  return `${indent}/**\n${text.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
}

// One schema document as TypeScript.
class Document {
  constructor(schema) {
    this.root = schema;
  }

  resolve(reference, at) {
    if (!reference.startsWith("#")) throw new Error(`${at}: a reference to another document: ${reference}`);
    const steps = reference.slice(1).split("/").slice(1);
    const unescaped = (step) => step.replaceAll("~1", "/").replaceAll("~0", "~");
    const found = steps.reduce((schema, step) => schema?.[unescaped(step)], this.root);
    if (found === undefined) throw new Error(`${at}: nothing at ${reference}`);
    return found;
  }

  type(schema, indent, at) {
    if (schema === true) return "unknown";
    if (schema === false) return "never";
    for (const word of Object.keys(schema)) {
      // An unknown keyword could change what values there are, and the type would be wrong without a word.
      if (!shaping.includes(word) && !ignored.includes(word)) {
        throw new Error(`${at}: "${word}" is not known to this generator`);
      }
    }
    const parts = [];
    if (schema.$ref !== undefined) parts.push(this.type(this.resolve(schema.$ref, at), indent, `${at}/$ref`));
    if ("const" in schema) parts.push(literal(schema.const));
    else if (schema.enum) parts.push(union(schema.enum.map(literal)));
    const choice = this.choice(schema, indent, at);
    if (choice) parts.push(choice);
    // Beside its values "type": "string" adds nothing.
    const structured = [schema.type].flat().some((name) => name === "object" || name === "array");
    if (parts.length === 0 || structured || schema.properties) {
      const base = this.base(schema, indent, at);
      if (base !== "unknown") parts.unshift(base);
    }
    const further = (schema.allOf ?? []).filter(isShaped);
    parts.push(...further.map((member) => this.type(member, indent, `${at}/allOf`)));
    if (parts.length === 0) return "unknown";
    return parts.length === 1 ? parts[0] : parts.map(within).join(" & ");
  }

  // Alternatives, unless they only say what must hold of the value beside its type.
  choice(schema, indent, at) {
    const members = schema.oneOf ?? schema.anyOf;
    if (!members || !members.every(isShaped)) return undefined;
    const inner = `${indent}  `;
    const one = (member) => ({ comment: doc(member, inner), type: this.type(member, inner, `${at}/oneOf`) });
    const types = members.map(one);
    if (types.every(({ comment }) => comment === "")) return union(types.map(({ type }) => type));
    return `\n${types.map(({ comment, type }) => `${comment}${inner}| ${within(type)}`).join("\n")}`;
  }

  base(schema, indent, at) {
    const names = [schema.type ?? (schema.properties ? "object" : [])].flat();
    if (names.length === 0) return "unknown";
    return union(names.map((name) => {
      if (name === "object") return this.object(schema, indent, at);
      if (name === "array") return this.array(schema, indent, at);
      if (!(name in scalars)) throw new Error(`${at}: the type "${name}" is not known to this generator`);
      return scalars[name];
    }));
  }

  object(schema, indent, at) {
    const inner = `${indent}  `;
    const known = Object.entries(schema.properties ?? {});
    const open = [schema.additionalProperties, ...Object.values(schema.patternProperties ?? {})]
      .filter((value) => value !== undefined && value !== false);
    const anything = known.length > 0 ? ["unknown"] : open.map((value) => this.type(value, inner, `${at}/*`));
    if (known.length === 0) {
      if (schema.additionalProperties === false && open.length === 0) return "Record<string, never>";
      return `Record<string, ${union(anything) || "unknown"}>`;
    }
    const lines = known.map(([name, value]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      const type = this.type(value, inner, `${at}/${name}`);
      const space = type.startsWith("\n") ? "" : " ";
      return `${doc(value, inner)}${inner}${key(name)}${optional}:${space}${type};\n`;
    });
    if (open.length > 0) lines.push(`${inner}[key: string]: ${union(anything)};\n`);
    return `{\n${lines.join("")}${indent}}`;
  }

  array(schema, indent, at) {
    const first = schema.prefixItems ?? [];
    // Beside `items`, leading items of the same type are only bounded more narrowly.
    if (schema.items !== undefined || first.length === 0) {
      const item = this.type(schema.items ?? true, indent, `${at}/items`);
      return /^\w+$/.test(item) ? `${item}[]` : `Array<${item}>`;
    }
    return `[${first.map((item) => this.type(item, indent, `${at}/prefixItems`)).join(", ")}, ...unknown[]]`;
  }
}

function isShaped(schema) {
  return typeof schema === "object" && shaping.some((word) => word in schema && word !== "required");
}

// The text of src/types.ts for the schemas in a folder.
export function generate(folder) {
  const suffix = ".schema.json";
  const files = fs.readdirSync(folder).filter((name) => name.endsWith(suffix)).sort();
  const types = files.map((file) => {
    const schema = JSON.parse(fs.readFileSync(path.join(folder, file), "utf8"));
    const words = file.slice(0, -suffix.length).split("-");
    const name = words.map((word) => word[0].toUpperCase() + word.slice(1)).join("");
    const about = [schema.title ?? file, schema.description].filter(Boolean).join(": ");
    const type = new Document(schema).type(schema, "", file);
    return `\n${doc({ ...schema, description: about }, "")}export type ${name} = ${type};\n`;
  });
  return `// Made by scripts/generate.mjs from contracts/*.schema.json: do not edit.\n${types.join("")}`;
}

function main() {
  const text = generate(path.join(here, "../../../contracts"));
  if (!process.argv.includes("--check")) {
    fs.writeFileSync(target, text);
  } else if (!fs.existsSync(target) || fs.readFileSync(target, "utf8") !== text) {
    console.error("src/types.ts is not what contracts/*.schema.json say; make it anew:");
    console.error("  node clients/typescript/scripts/generate.mjs");
    process.exitCode = 1;
  }
}

if (fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main();
