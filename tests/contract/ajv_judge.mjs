// ajv_judge.mjs CONTRACTS OUT: one line "NAME accept|refuse" for every document named in OUT/decoder.txt.
import fs from 'node:fs';
import path from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';

const [contracts, out] = process.argv.slice(2);
// Conditions (if/then) speak of keys and types that their parents declare: three of strict mode's checks would
// want them declared again.
const ajv = new Ajv2020({
  strict: true, strictTypes: false, strictRequired: false, strictTuples: false, allowUnionTypes: true,
});
const validators = new Map();
const mutants = new Map();

function validator(kind) {
  if (!validators.has(kind)) {
    const schema = JSON.parse(fs.readFileSync(path.join(contracts, `${kind}.schema.json`), 'utf8'));
    validators.set(kind, ajv.compile(schema));
  }
  return validators.get(kind);
}

function lines(file) {
  if (!mutants.has(file)) mutants.set(file, fs.readFileSync(path.join(out, file), 'utf8').split('\n'));
  return mutants.get(file);
}

// "fixtures/KIND/valid/x.json" or "mutants/KIND.ndjson:LINE"
function document(name) {
  if (name.startsWith('fixtures/')) {
    return {kind: name.split('/')[1], text: fs.readFileSync(path.join(contracts, name), 'utf8')};
  }
  const [file, line] = name.split(':');
  return {kind: path.basename(file, '.ndjson'), text: lines(file)[Number(line) - 1]};
}

function verdict({kind, text}) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return 'refuse';
  }
  return validator(kind)(value) ? 'accept' : 'refuse';
}

const names = fs.readFileSync(path.join(out, 'decoder.txt'), 'utf8').trim().split('\n').map((l) => l.split(' ')[0]);
process.stdout.write(names.map((name) => `${name} ${verdict(document(name))}\n`).join(''));
