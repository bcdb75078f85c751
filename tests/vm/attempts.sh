#!/bin/sh
# attempts.sh NAME PROGRAMS HOME STORAGE: a repository, attempts on it, and the same change by plain git. Each
# command's output is printed between two marks, with its exit status. The same on the emulated machine and on
# the host of the test.
set -eu
name=$1 programs=$2 home=$3 storage=$4
# Takes away a folder of the commit, makes it again, and does the rest that an overlay has to hide or copy.
change='rm -rf dir; mkdir dir; echo new > dir/x; rm gone; mv kept moved; echo more >> edited; chmod 755 plain'
look='cat dir/one; git status --porcelain; if { echo x > new; } 2> /dev/null; then echo written; fi'

report() {
  label=$1; shift
  printf '@begin %s/%s\n' "$name" "$label"
  code=0
  "$@" 2> "$home/stderr" || code=$?
  printf '\n@end %s/%s %s\n' "$name" "$label" "$code"
  printf '@begin %s/%s.stderr\n' "$name" "$label"
  cat "$home/stderr"
  printf '\n@end %s/%s.stderr 0\n' "$name" "$label"
}
attempt() {
  verb=$1 script=$2; shift 2
  "$programs/cofferdam" "$verb" --json --config "$home/config.toml" --repo "$home/repo" --agent command "$@" \
    -- /bin/sh -c "$script"
}
# What plain git makes of the same commands.
plain_git() {
  git clone -q "$home/repo" "$home/plain"
  (cd "$home/plain" && sh -c "$change" && git add -A && git write-tree)
}
published_tree() { git -C "$home/repo" rev-parse "refs/heads/cofferdam/writes-$name^{tree}"; }

umask 022
git config --global user.name 'Test User'
git config --global user.email test@localhost
git init -q -b main "$home/repo"
cd "$home/repo"
mkdir -p dir/deep
for file in dir/one dir/deep/two gone kept edited plain; do echo "$file" > "$file"; done
git add -A
git commit -q -m base
printf '[limits]\nwork_bytes = 33554432\nwork_inodes = 1000\n[workspace]\nstorage = "%s"\n' "$storage" \
  > "$home/config.toml"

# Read-only, and with a way out: then there is a gateway, which confines itself as far as the kernel can.
reads() {
  report doctor "$programs/cofferdam" doctor --json --config "$home/config.toml"
  report reads attempt ask "$look" --attempt-id "reads-$name" --allow-host packages.example
  report printed cat "$home/.local/state/cofferdam/attempts/reads-$name/stdout"
  report log "$programs/cofferdam" log "reads-$name" --json
  report plain plain_git
}

report writes attempt run "$change" --attempt-id "writes-$name"
report published published_tree
if [ "$storage" = memory ]; then reads; fi
