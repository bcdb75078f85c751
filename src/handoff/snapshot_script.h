// What runs in the snapshot box: POSIX sh, coreutils, findutils and git. Lists are NUL-separated throughout
// and sorted by bytes, so that comm(1) can do the set arithmetic. git never stands on the left of a pipe: its
// failure must end the script.
#pragma once

namespace cofferdam::handoff {

inline constexpr const char* kSnapshotScript = R"sh(
set -eu
umask 077
work=$1 metadata=$2 out=$3 scratch=$4 base=$5 max_file=$6
export LC_ALL=C
lists=$(mktemp -d "$scratch/snapshot.XXXXXX")
export TMPDIR="$lists"
export GIT_DIR="$metadata" GIT_WORK_TREE="$work" GIT_INDEX_FILE="$out/index"
export GIT_OBJECT_DIRECTORY="$out/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$metadata/objects"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
export GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none
mkdir -p "$out/objects"
cd "$work"

g() {
  git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \
    -c core.splitIndex=false -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false \
    -c core.protectHFS=true -c core.protectNTFS=true -c core.safecrlf=false -c core.autocrlf=false \
    -c core.bigFileThreshold=67108864 -c core.attributesFile=/dev/null -c core.excludesFile=/dev/null \
    -c core.commitGraph=false -c gc.auto=0 -c protocol.allow=never -c advice.addEmbeddedRepo=false "$@"
}
count() { tr -cd '\0' < "$1" | wc -c; }
# tracked LIST: what the index holds now.
tracked() { g ls-files -z > "$lists/$1"; sort_list "$1"; }
sort_list() { sort -z -u -o "$lists/$1" "$lists/$1"; }
# refuse REASON LIST: the first path of the list is the example.
refuse() {
  printf '%s\0' cofferdam-snapshot/1 refused "$1"
  if [ -s "$2" ]; then head -z -n 1 "$2"; else printf '\0'; fi
  printf '%s\0' end
  exit 0
}
# find_all RULE ACTION LIST: one finding for every path of the list.
find_all() {
  xargs -0 -r -n 500 sh -c 'rule=$1 action=$2; shift 2
    for path; do printf "finding\0%s\0%s\0%s\0" "$rule" "$action" "$path"; done' sh "$1" "$2" \
    < "$3" >> "$lists/findings"
}

# One walk without following anything. A nested .git is left out, and what it held lies in the tree as ordinary
# files. What is no file, cannot be read or is dangerous to open never reaches git.
for list in findings files large unreadable blocking depths nothing claimed packed; do : > "$lists/$list"; done
find . -mindepth 1 -maxdepth 128 \
  -name .git \( -path ./.git -o -fprintf "$lists/findings" 'finding\0nested-git\0dropped\0%P\0' \) -prune \
  -o -type d \( ! -readable -o ! -executable \) \
     -fprintf "$lists/findings" 'finding\0unreadable\0dropped\0%P\0' -prune \
  -o -type d -fprintf "$lists/depths" '%d\n' \
  -o -type l -fprintf "$lists/files" '%P\0' \
  -o ! -type f -fprintf "$lists/findings" 'finding\0special-file\0dropped\0%P\0' -type p \
     \( -name .gitattributes -o -name .gitignore \) -fprintf "$lists/blocking" '%P\0' \
  -o ! -type f -o ! -readable -fprintf "$lists/findings" 'finding\0unreadable\0dropped\0%P\0' \
     -fprintf "$lists/unreadable" '%P\0' \
  -o \( ! -perm /6000 -o -fprintf "$lists/findings" 'finding\0set-id\0reported\0%P\0' \) \
     \( ! -size "+${max_file}c" -o -fprintf "$lists/large" '%P\0' \) -fprintf "$lists/files" '%P\0'
for list in files large unreadable; do sort_list "$list"; done
if [ -s "$lists/blocking" ]; then refuse blocking-file "$lists/blocking"; fi
deepest=$(sort -rn "$lists/depths" | head -n 1)
if [ "${deepest:-0}" -ge 128 ]; then refuse depth "$lists/nothing"; fi

# The base tree without any stat data: git believes nothing and hashes every tracked file.
g read-tree "$base"
tracked base
comm -z -12 "$lists/large" "$lists/base" > "$lists/refused"
if [ -s "$lists/refused" ]; then refuse file-size "$lists/refused"; fi
g update-index -q --ignore-submodules --really-refresh > /dev/null
g diff-files -z --name-only --ignore-submodules=all > "$lists/changed"
sort_list changed
comm -z -23 "$lists/changed" "$lists/unreadable" > "$lists/readable"
comm -z -23 "$lists/readable" "$lists/files" > "$lists/gone"
comm -z -12 "$lists/changed" "$lists/files" > "$lists/edited"
g update-index -z --force-remove --stdin < "$lists/gone"
g update-index -z --stdin < "$lists/edited"

# What is new and not ignored. The index plays no part in the question: what it holds is not asked about. The ./
# keeps a name that starts with a colon from being read as pathspec magic.
tracked known
comm -z -23 "$lists/files" "$lists/known" > "$lists/untracked"
xargs -0 -r printf './%s\0' < "$lists/untracked" > "$lists/asked"
g check-ignore -z --no-index --stdin < "$lists/asked" > "$lists/answered" || [ $? -eq 1 ]
cut -z -c 3- "$lists/answered" > "$lists/ignored"
comm -z -23 "$lists/untracked" "$lists/ignored" > "$lists/new"

# A gitlink of the base stays as it is. What lies at, below or across its path is not carried.
printf '160000\0' > "$lists/mode"
g ls-files -s -z > "$lists/entries"
sort_list entries
join -z -t ' ' "$lists/mode" "$lists/entries" | cut -z -f 2- > "$lists/gitlinks"
if [ -s "$lists/gitlinks" ]; then
  xargs -0 -n 500 sh -c 'lists=$1; shift
    for link; do
      across= above=$link
      while :; do
        case $above in */*) above=${above%/*} ;; *) break ;; esac
        if [ -L "./$above" ] || [ -f "./$above" ]; then across=1; printf "%s\0" "$above"; fi
      done
      if [ "$across" ] || ! [ -d "./$link" ] || [ -L "./$link" ]; then
        printf "%s\0" "$link"
        printf "finding\0gitlink\0reported\0%s\0" "$link" >> "$lists/findings"
      else
        find "./$link" ! -type d -print0 | cut -z -c 3-
      fi
    done' sh "$lists" < "$lists/gitlinks" > "$lists/claimed"
  sort_list claimed
fi
comm -z -12 "$lists/new" "$lists/claimed" > "$lists/dropped"
find_all gitlink dropped "$lists/dropped"
comm -z -23 "$lists/new" "$lists/claimed" > "$lists/add"

comm -z -12 "$lists/add" "$lists/large" > "$lists/refused"
if [ -s "$lists/refused" ]; then refuse file-size "$lists/refused"; fi
longest=$(tr -c '\0' x < "$lists/add" | tr '\0' '\n' | wc -L)
if [ "$longest" -gt 4000 ]; then refuse path-length "$lists/nothing"; fi
# Names that git itself never takes (aliases of .git, a .gitmodules that is a link) are passed over by it.
g update-index --add -z --stdin < "$lists/add"
tracked taken
comm -z -23 "$lists/add" "$lists/taken" > "$lists/rejected"
find_all unsafe-name dropped "$lists/rejected"
tree=$(g write-tree)

# Exactly the new objects. On read-only storage git cannot refresh the time of an object it has and writes it
# once more, so what the base holds is taken out again.
objects=0
if [ "$tree" != "$base" ]; then
  find "$out/objects" -type f -path '*/[0-9a-f][0-9a-f]/*' -printf '%P\n' > "$lists/loose"
  find "$out/objects" -name '*.idx' > "$lists/indexes"  # git packs large files at once
  while read -r index; do g show-index < "$index" >> "$lists/packed"; done < "$lists/indexes"
  { tr -d / < "$lists/loose"; cut -d ' ' -f 2 "$lists/packed"; } | sort -u > "$lists/objects"
  printf 'missing\n' > "$lists/missing"
  GIT_OBJECT_DIRECTORY="$metadata/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES='' \
    g cat-file --batch-check='%(objecttype) %(objectname)' < "$lists/objects" > "$lists/checked"
  sort -t ' ' -k 2,2 "$lists/checked" | join -t ' ' -2 2 -o 2.1 "$lists/missing" - > "$lists/pack"
  g pack-objects --stdout --delta-base-offset -q < "$lists/pack" > "$out/result.pack"
  objects=$(wc -l < "$lists/pack")
fi

found=$(($(count "$lists/findings") / 4)) more=0
if [ "$found" -gt 200 ]; then more=$((found - 200)); fi
printf '%s\0' cofferdam-snapshot/1 tree "$tree" objects "$objects" ignored "$(count "$lists/ignored")"
head -z -n 800 "$lists/findings"
printf '%s\0' more "$more" end
rm -rf "$lists"
)sh";

}  // namespace cofferdam::handoff
