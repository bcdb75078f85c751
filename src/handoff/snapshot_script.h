// What runs in the snapshot box: POSIX sh, coreutils, findutils and git. Lists are NUL-separated throughout
// and sorted by bytes, so that comm(1) can do the set arithmetic. git never stands on the left of a pipe: its
// failure must end the script.
//
// Where the work tree is an overlay over the cached tree, only what lies in its upper layer can have changed.
// The names come from there, everything else from the work tree itself; the index holds the entries of the
// folders concerned, and the new tree is the base tree with the changes put in. What it costs follows from
// the change.
#pragma once

namespace cofferdam::handoff {

inline constexpr const char* kSnapshotScript = R"sh(
set -eu
umask 077
work=$1 metadata=$2 out=$3 scratch=$4 base=$5 max_file=$6 upper=$7
export LC_ALL=C
lists=$(mktemp -d "$scratch/snapshot.XXXXXX")
export TMPDIR="$lists"
export GIT_DIR="$metadata" GIT_WORK_TREE="$work" GIT_INDEX_FILE="$out/index"
export GIT_OBJECT_DIRECTORY="$out/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$metadata/objects"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
export GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none
# A checkpoint, or a snapshot that was broken off, may have been here before.
find "$out" -mindepth 1 -delete
mkdir -p "$out/objects"
cd "$work"

g() {
  git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \
    -c core.splitIndex=false -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false \
    -c core.protectHFS=true -c core.protectNTFS=true -c core.safecrlf=false -c core.autocrlf=false \
    -c core.bigFileThreshold=67108864 -c core.attributesFile=/dev/null -c core.excludesFile=/dev/null \
    -c core.commitGraph=false -c gc.auto=0 -c protocol.allow=never -c advice.addEmbeddedRepo=false \
    -c core.quotePath=true -c fastimport.unpackLimit=0 -c pack.threads=1 "$@"
}
count() { tr -cd '\0' < "$1" | wc -c; }
sort_list() { sort -z -u -o "$lists/$1" "$lists/$1"; }
plain_list() { cut -z -c 3- "$lists/$1" | sort -z -u > "$lists/plain"; mv "$lists/plain" "$lists/$1"; }
# tracked LIST: what the index holds now.
tracked() { g ls-files -z > "$lists/$1"; sort_list "$1"; }
# refuse REASON LIST: the first path of the list is the example.
refuse() {
  printf '%s\0' cofferdam-snapshot/1 refused "$1"
  if [ -s "$2" ]; then head -z -n 1 "$2"; else printf '\0'; fi
  printf '%s\0' end
  exit 0
}
# find_all RULE ACTION LIST: one finding for every path of the list.
find_all() {
  if ! [ -s "$3" ]; then return 0; fi
  xargs -0 -r -n 500 sh -c 'rule=$1 action=$2; shift 2
    for path; do printf "finding\0%s\0%s\0%s\0" "$rule" "$action" "$path"; done' sh "$1" "$2" \
    < "$3" >> "$lists/findings"
}
# drivers LIST OPTION...: those of the list whose filter attribute names a driver.
drivers() {
  from=$1; shift
  g check-attr -z "$@" --stdin filter < "$from" > "$lists/filters"
  xargs -0 -r -n 600 sh -c 'while [ $# -ge 3 ]; do
    case $3 in unspecified | unset | set) ;; *) printf "%s\0" "$1" ;; esac
    shift 3; done' sh < "$lists/filters"
}

# One look without following anything. A nested .git is left out, and what it held lies in the tree as ordinary
# files. What is no file, cannot be read or is dangerous to open never reaches git.
look() {
  find "$@" \
    -name .git \( -path ./.git -o -fprintf "$lists/findings" 'finding\0nested-git\0dropped\0%p\0' \) -prune \
    -o -type d \( ! -readable -o ! -executable \) -fprintf "$lists/closed" '%p/\0' \
       -fprintf "$lists/findings" 'finding\0unreadable\0dropped\0%p\0' -prune \
    -o -type d -fprintf "$lists/folders" '%p/\0' \
    -o -type l -fprintf "$lists/files" '%p\0' \
    -o ! -type f -fprintf "$lists/findings" 'finding\0special-file\0dropped\0%p\0' -type p \
       \( -name .gitattributes -o -name .gitignore \) -fprintf "$lists/blocking" '%p\0' \
    -o ! -type f -o ! -readable -fprintf "$lists/findings" 'finding\0unreadable\0dropped\0%p\0' \
       -fprintf "$lists/unreadable" '%p\0' \
    -o \( ! -perm /6000 -o -fprintf "$lists/setid" '%p\0' \) \( -links 1 -o -fprintf "$lists/linked" '%p\0' \) \
       \( ! -size "+${max_file}c" -o -fprintf "$lists/large" '%p\0' \) -fprintf "$lists/files" '%p\0'
}
for list in findings files folders closed large unreadable blocking setid linked nothing claimed packed same; do
  : > "$lists/$list"
done
if [ -z "$upper" ]; then
  look . -mindepth 1 -maxdepth 128
else
  # Character devices are the overlay's own marks for what was removed.
  (cd "$upper" && find . -mindepth 1 -maxdepth 128 \
    \( -name .git -o -type d \( ! -readable -o ! -executable \) \) -prune -print0 -o ! -type c -print0) > "$lists/names"
  if [ -s "$lists/names" ]; then look -files0-from "$lists/names" -maxdepth 0; fi
fi
for list in files folders closed large unreadable blocking setid linked; do plain_list "$list"; done
if [ -s "$lists/blocking" ]; then refuse blocking-file "$lists/blocking"; fi
deepest=$(tr -cd '/\0' < "$lists/folders" | tr '\0' '\n' | wc -L)
if [ "$deepest" -ge 128 ]; then refuse depth "$lists/nothing"; fi

# The base without any stat data: git believes nothing and hashes every file that could have changed.
if [ -z "$upper" ]; then
  g read-tree "$base"
  tracked base
else
  # Every entry of the folders concerned, and which of them are still what they were: a folder, or none.
  { printf './\0'; sed -z 's,^,./,' "$lists/folders"; } > "$lists/places"
  find -files0-from "$lists/places" -mindepth 1 -maxdepth 1 \
    \( -type d -printf 'd %p\0' -o \( -type f -o -type l \) -printf 'f %p\0' \) > "$lists/there"
  sed -z -i 's,^\(..\)\./*,\1,' "$lists/there"
  sort_list there
  g ls-tree -z "$base" > "$lists/entries"
  GIT_LITERAL_PATHSPECS=1 xargs -0 -r -n 500 git ls-tree -z "$base" -- < "$lists/folders" >> "$lists/entries"
  sed -z -n 's/^[0-9]* tree [0-9a-f]*\t/d /p; s/^[0-9]* blob [0-9a-f]*\t/f /p' "$lists/entries" |
    sort -z -u > "$lists/was"
  comm -z -23 "$lists/was" "$lists/there" > "$lists/missing"
  { sed -z -n 's,^d \(.*\)$,\1/,p' "$lists/missing"; cat "$lists/closed"; } > "$lists/emptied"
  GIT_LITERAL_PATHSPECS=1 xargs -0 -r -n 500 git ls-tree -z -r "$base" -- < "$lists/emptied" > "$lists/removed"
  cat "$lists/entries" "$lists/removed" > "$lists/all"
  sed -z -n '/^[0-9]* tree /!p' "$lists/all" | g update-index -z --index-info
  tracked base
  # Neither looked at above nor missing: not to be looked at below.
  { cat "$lists/files"; sed -z -n 's/^f //p' "$lists/missing"; sed -z 's/^[^\t]*\t//' "$lists/removed"; } |
    sort -z -u > "$lists/suspects"
  comm -z -23 "$lists/base" "$lists/suspects" > "$lists/untouched"
  g update-index -z --assume-unchanged --stdin < "$lists/untouched"
  g ls-files -s > "$lists/index-before"
fi
comm -z -12 "$lists/large" "$lists/base" > "$lists/refused"
if [ -s "$lists/refused" ]; then refuse file-size "$lists/refused"; fi
g update-index -q --ignore-submodules --refresh > /dev/null || true
g diff-files -z --name-only --ignore-submodules=all > "$lists/changed"
sort_list changed
comm -z -23 "$lists/changed" "$lists/unreadable" > "$lists/readable"
comm -z -23 "$lists/readable" "$lists/files" > "$lists/gone"
comm -z -12 "$lists/readable" "$lists/files" > "$lists/edited"

# What is new and not ignored. The index plays no part in the question: what it holds is not asked about. The ./
# keeps a name that starts with a colon from being read as pathspec magic.
comm -z -23 "$lists/files" "$lists/base" > "$lists/untracked"
: > "$lists/ignored"
if [ -s "$lists/untracked" ]; then
  xargs -0 -r printf './%s\0' < "$lists/untracked" > "$lists/asked"
  g check-ignore -z --no-index --stdin < "$lists/asked" > "$lists/answered" || [ $? -eq 1 ]
  cut -z -c 3- "$lists/answered" > "$lists/ignored"
fi
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

# Changed attributes change how every file is read. A file whose bytes are what the base's attributes make of the
# base has not been changed by anybody.
sort -z -m "$lists/edited" "$lists/gone" "$lists/untracked" > "$lists/touched"
if [ -s "$lists/edited" ] && grep -qzE '(^|/)\.gitattributes$' "$lists/touched"; then
  mkdir "$out/was"
  GIT_WORK_TREE="$out/was" g checkout-index -q -f -z --stdin < "$lists/edited"
  xargs -0 -n 500 sh -c 'was=$1; shift
    for path; do
      if [ -L "./$path" ] || [ -L "$was/$path" ] || ! [ -f "$was/$path" ]; then continue; fi
      if [ -x "./$path" ]; then [ -x "$was/$path" ] || continue; elif [ -x "$was/$path" ]; then continue; fi
      if cmp -s "./$path" "$was/$path"; then printf "%s\0" "$path"; fi
    done' sh "$out/was" < "$lists/edited" > "$lists/same"
  rm -rf "$out/was"
  sort_list same
  comm -z -23 "$lists/edited" "$lists/same" > "$lists/really"
  mv "$lists/really" "$lists/edited"
fi
sort -z -m "$lists/edited" "$lists/add" > "$lists/carried"
# Under a driver, by the rules of the base or by those of the agent: it goes in as it lies there.
if [ -s "$lists/carried" ]; then
  { drivers "$lists/carried"; drivers "$lists/carried" --cached; } | sort -z -u > "$lists/driven"
  find_all driver reported "$lists/driven"
  comm -z -12 "$lists/carried" "$lists/setid" > "$lists/found"
  find_all set-id reported "$lists/found"
  comm -z -12 "$lists/carried" "$lists/linked" > "$lists/found"
  find_all hard-link reported "$lists/found"
fi

if [ -s "$lists/gone" ]; then g update-index -z --force-remove --stdin < "$lists/gone"; fi
if [ -s "$lists/edited" ]; then g update-index -z --stdin < "$lists/edited"; fi
# Names that git itself never takes (aliases of .git, a .gitmodules that is a link) are passed over by it.
if [ -s "$lists/add" ]; then g update-index --add -z --stdin < "$lists/add"; fi
tracked taken
comm -z -23 "$lists/add" "$lists/taken" > "$lists/rejected"
find_all unsafe-name dropped "$lists/rejected"

made=
if [ -z "$upper" ]; then
  tree=$(g write-tree)
else
  # What is gone first, then what is there: a folder may have become a file, or a file a folder.
  g ls-files -s > "$lists/index-after"
  sort -o "$lists/index-before" "$lists/index-before"
  sort -o "$lists/index-after" "$lists/index-after"
  comm -13 "$lists/index-before" "$lists/index-after" | sed 's/^\([0-9]*\) \([0-9a-f]*\) 0\t/M \1 \2 /' > "$lists/put"
  cut -f 2- "$lists/index-before" | sort > "$lists/paths-before"
  cut -f 2- "$lists/index-after" | sort > "$lists/paths-after"
  comm -23 "$lists/paths-before" "$lists/paths-after" | sed 's/^/D /' > "$lists/take"
  tree=$base
  if [ -s "$lists/put" ] || [ -s "$lists/take" ]; then
    mkdir -p "$lists/git/refs" "$lists/git/objects"
    cp "$metadata/config" "$lists/git/config"
    printf 'ref: refs/heads/made\n' > "$lists/git/HEAD"
    { printf 'commit refs/heads/made\ncommitter x <x> 0 +0000\ndata 0\nM 040000 %s ""\n' "$base"
      cat "$lists/take" "$lists/put"
      printf '\ndone\n'; } > "$lists/import"
    GIT_DIR="$lists/git" g fast-import --quiet --done < "$lists/import" > /dev/null
    made=$(GIT_DIR="$lists/git" g rev-parse --verify refs/heads/made)
    tree=$(GIT_DIR="$lists/git" g rev-parse --verify 'refs/heads/made^{tree}')
  fi
fi
# Exactly the new objects. On read-only storage git cannot refresh the time of an object it has and writes it
# once more, so what the base holds is taken out again, and so is the commit that only carried the tree.
objects=0
if [ "$tree" != "$base" ]; then
  find "$out/objects" -type f -path '*/[0-9a-f][0-9a-f]/*' -printf '%P\n' > "$lists/loose"
  find "$out/objects" -name '*.idx' > "$lists/indexes"  # git packs large files, and what it imports, at once
  while read -r index; do g show-index < "$index" >> "$lists/packed"; done < "$lists/indexes"
  { tr -d / < "$lists/loose"; cut -d ' ' -f 2 "$lists/packed"; } | sort -u > "$lists/objects"
  if [ "$made" ]; then sed -i "/^$made\$/d" "$lists/objects"; fi
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
sort_list ignored
head -z -n 200 "$lists/ignored" | xargs -0 -r printf 'path\0%s\0'
head -z -n 800 "$lists/findings"
printf '%s\0' more "$more" end
rm -rf "$lists"
)sh";

}  // namespace cofferdam::handoff
