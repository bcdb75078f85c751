#!/bin/sh
# client.sh package OUT            types are current and strict, the generator, what npm pack makes
# client.sh attempts OUT COFFERDAM the client with the real program, and with ones that break the contract
# Exit status 77: node, npm or TypeScript is not there, so nothing was tested.
set -eu

part=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
package=$(cd "$here/../../clients/typescript" && pwd)

skip() {
  case ",${COFFERDAM_MUST_WORK:-}," in
    *,all,* | *,client,*) echo "FAILED client.$part: $1" && exit 1 ;;
  esac
  echo "SKIP client.$part: $1"
  exit 77
}
command -v node >/dev/null || skip "node is not installed"
command -v npm >/dev/null || skip "npm is not installed"
cd "$package"
stamp=node_modules/.cofferdam-lock
if ! cmp -s package-lock.json "$stamp"; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || skip "npm ci could not install TypeScript"
  cp package-lock.json "$stamp"
fi

rm -rf "$out"
mkdir -p "$out"
echo '{"type":"module"}' >"$out/package.json"
node scripts/generate.mjs --check
node node_modules/typescript/bin/tsc --outDir "$out"
if [ "$part" = package ]; then exec node --test test/*.test.mjs; fi
COFFERDAM_BINARY=$3 exec node --test "$out"/test/*.test.js
