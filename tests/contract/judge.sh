#!/bin/sh
# judge.sh CONTRACT_JUDGE OUT: what our decoders say of every fixture and mutant must be what Ajv and
# python3-jsonschema make of contracts/*.schema.json, but for the differences listed in exceptions.tsv.
# Exit status 77: a judge is not installed, so nothing was compared.
set -eu

judge=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
contracts=$(cd "$here/../../contracts" && pwd)
# The distribution's python, which has the distribution's jsonschema; another one may come first in PATH.
python=${COFFERDAM_JUDGE_PYTHON:-/usr/bin/python3}

skip() {
  echo "SKIP contract.judges: $1"
  exit 77
}
command -v node >/dev/null || skip "node is not installed"
[ -x "$python" ] || skip "$python is not installed"
"$python" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null ||
  skip "$python has no jsonschema that knows draft 2020-12 (Debian: python3-jsonschema)"
if [ ! -d "$here/node_modules/ajv" ]; then
  command -v npm >/dev/null || skip "npm is not installed, so Ajv cannot be"
  (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund) || skip "npm ci could not install Ajv"
fi

rm -rf "$out"
mkdir -p "$out"
"$judge" "$contracts/fixtures" "$out"
node "$here/ajv_judge.mjs" "$contracts" "$out" >"$out/ajv.txt"
"$python" "$here/jsonschema_judge.py" "$contracts" "$out" >"$out/jsonschema.txt"
exec "$python" "$here/compare_verdicts.py" "$here/exceptions.tsv" "$out"
