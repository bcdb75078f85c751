#!/bin/sh
# attempts.sh NAME PROGRAMS HOME STORAGE [PART...]: a repository, an attempt on it, and what else is asked for.
# Each command's output is printed between two marks, with its exit status. The same on the emulated machine and
# on the host of the test.
set -eu
name=$1 programs=$2 home=$3 storage=$4
shift 4
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
  "$programs/cofferdam" "$verb" --json --config "$config" --repo "$home/repo" --agent command "$@" \
    -- /bin/sh -c "$script"
}
# What plain git makes of the same commands.
plain_git() {
  git clone -q "$home/repo" "$home/plain"
  (cd "$home/plain" && sh -c "$change" && git add -A && git write-tree)
}
published_tree() { git -C "$home/repo" rev-parse "refs/heads/cofferdam/writes-$name^{tree}"; }

# configure FILE LIMITS
configure() {
  printf '[deadlines]\ngrace = "1s"\n[limits]\nwork_bytes = 33554432\nwork_inodes = 1000\n%b[workspace]\nstorage = "%s"\n' \
    "$2" "$storage" > "$1"
}

umask 022
git config --global user.name 'Test User'
git config --global user.email test@localhost
git init -q -b main "$home/repo"
cd "$home/repo"
mkdir -p dir/deep
for file in dir/one dir/deep/two gone kept edited plain; do echo "$file" > "$file"; done
git add -A
git commit -q -m base
config=$home/config.toml
configure "$config" ''

# Read-only, and with a way out: then there is a gateway, which confines itself as far as the kernel can.
reads() {
  report doctor "$programs/cofferdam" doctor --json --config "$home/config.toml"
  report reads attempt ask "$look" --attempt-id "reads-$name" --allow-host packages.example
  report printed cat "$home/.local/state/cofferdam/attempts/reads-$name/stdout"
  report log "$programs/cofferdam" log "reads-$name" --json
  report plain plain_git
}

# Bounds of the control group: what meets them, and the same below them. Memory that no process has mapped, which
# only the group counts.
take="echo new > taken; perl -e '
my \$name = q(x);
open(my \$file, q(>&=), syscall(319, \$name, 0)) or die;  # memfd_create(2)
for (1..128) { syswrite(\$file, q(x) x 1048576) == 1048576 or die }
print qq(whole\n)'"
bomb='echo new > taken; b() { b | b & }; b; exec sleep 60'
few='for i in 1 2 3 4; do sleep 0.1 & done; wait'
bounds() {
  config=$home/small.toml
  configure "$config" 'memory_bytes = 67108864\npids = 32\nscratch_bytes = 4194304\n'
  report memory-over attempt run "$take; sleep 60" --attempt-id "memory-over-$name"
  report memory-over-printed cat "$home/.local/state/cofferdam/attempts/memory-over-$name/stdout"
  report pids-over attempt run "$bomb" --attempt-id "pids-over-$name"
  report pids-below attempt run "$few" --attempt-id "pids-below-$name"
  config=$home/large.toml
  configure "$config" 'memory_bytes = 268435456\nscratch_bytes = 4194304\n'
  report memory-below attempt run "$take" --attempt-id "memory-below-$name"
  report memory-below-printed cat "$home/.local/state/cofferdam/attempts/memory-below-$name/stdout"
  config=$home/config.toml
}
gate() { report gate "$programs/cofferdam" gate --json --config "$config"; }
refused() {
  report refused attempt run "$change" --attempt-id "refused-$name"
  report refused-doctor "$programs/cofferdam" doctor --json --config "$config"
}

if [ "$*" = refused ]; then refused; exit 0; fi
report writes attempt run "$change" --attempt-id "writes-$name"
report published published_tree
for part in "$@"; do "$part"; done
