// What runs in the snapshot box: POSIX sh, coreutils, findutils and git. Lists are NUL-separated throughout
// and sorted by bytes, so that comm(1) can do the set arithmetic. git never stands on the left of a pipe: its
// failure must end the script.
//
// Where the work tree is an overlay over the cached tree, only what lies in its upper layer can have changed.
// The names come from there, everything else from the work tree itself; the index holds the entries of the
// folders concerned, and the new tree is the base tree with the changes put in. What it costs follows from
// the change. Of a small one nearly all of that is the start of processes, so none is started over an empty
// list.
#pragma once

namespace cofferdam::handoff {

inline constexpr const char* kSnapshotScript = R"sh(
set -eu
umask 077
work=$1 metadata=$2 out=$3 scratch=$4 base=$5 max_file=$6 upper=$7
export LC_ALL=C
lists=$scratch/snapshot
export TMPDIR="$lists"
export GIT_DIR="$metadata" GIT_WORK_TREE="$work" GIT_INDEX_FILE="$out/index"
export GIT_OBJECT_DIRECTORY="$out/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$metadata/objects"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
export GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none
# A checkpoint, or a snapshot that was broken off, may have been here before.
if [ -e "$out/objects" ]; then find "$out" -mindepth 1 -delete; fi
if [ -e "$lists" ]; then rm -rf "$lists"; fi
mkdir -p "$out/objects" "$lists/git/refs" "$lists/git/objects"
cd "$work"

g() {
  git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \
    -c core.splitIndex=false -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false \
    -c core.protectHFS=true -c core.protectNTFS=true -c core.safecrlf=false -c core.autocrlf=false \
    -c core.bigFileThreshold=67108864 -c core.attributesFile=/dev/null -c core.excludesFile=/dev/null \
    -c core.commitGraph=false -c gc.auto=0 -c protocol.allow=never -c advice.addEmbeddedRepo=false \
    -c core.quotePath=true -c fastimport.unpackLimit=0 -c pack.threads=1 "$@"
}
count() { if [ -s "$1" ]; then tr -cd '\0' < "$1" | wc -c; else echo 0; fi; }
sort_list() { if [ -s "$lists/$1" ]; then sort -z -u -o "$lists/$1" "$lists/$1"; fi; }
# sort(1) opens what it writes once it has read everything.
plain_list() { if [ -s "$lists/$1" ]; then cut -z -c 3- "$lists/$1" | sort -z -u -o "$lists/$1"; fi; }
# minus LIST LIST NEW: of the first what is not in the second. both LIST LIST NEW: what is in both.
minus() {
  if ! [ -s "$lists/$1" ]; then
    : > "$lists/$3"
  elif [ -s "$lists/$2" ]; then
    comm -z -23 "$lists/$1" "$lists/$2" > "$lists/$3"
  else
    cat "$lists/$1" > "$lists/$3"
  fi
}
both() {
  if [ -s "$lists/$1" ] && [ -s "$lists/$2" ]; then
    comm -z -12 "$lists/$1" "$lists/$2" > "$lists/$3"
  else
    : > "$lists/$3"
  fi
}
# tracked LIST: what the index holds now, in the order of the index, which is that of the bytes.
tracked() { g ls-files -z > "$lists/$1"; }
# refuse REASON LIST: the first path of the list is the example.
refuse() {
  printf '%s\0' cofferdam-snapshot/1 refused "$1"
  if [ -s "$2" ]; then head -z -n 1 "$2"; else printf '\0'; fi
  printf '%s\0' end
  exit 0
}
# find_all RULE ACTION LIST [FILE]: one finding for every path of the list.
find_all() {
  if ! [ -s "$3" ]; then return 0; fi
  xargs -0 -r -n 500 sh -c 'rule=$1 action=$2; shift 2
    for path; do printf "finding\0%s\0%s\0%s\0" "$rule" "$action" "$path"; done' sh "$1" "$2" \
    < "$3" >> "$lists/${4:-findings}"
}
# drivers LIST OPTION...: those of the list whose filter attribute names a driver.
drivers() {
  from=$1; shift
  g check-attr -z "$@" --stdin filter < "$from" > "$lists/filters"  # path, attribute, value
  sed -z -n '1~3h; 3~3{/^\(unspecified\|unset\|set\)$/!{x;p}}' "$lists/filters"
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
for list in findings first files folders closed large unreadable blocking setid linked nothing claimed packed same \
  removed take; do
  : > "$lists/$list"
done
if [ -z "$upper" ]; then
  look . -mindepth 1 -maxdepth 128
else
  # Character devices are the overlay's own marks for what was removed.
  (cd "$upper" && find . -mindepth 1 -maxdepth 128 \
    \( -name .git -o -type d \( ! -readable -o ! -executable \) \) -prune -print0 -o ! -type c -print0) > "$lists/names"
  # A longer one could not be named to the kernel.
  if [ "$(tr -c '\0' x < "$lists/names" | tr '\0' '\n' | wc -L)" -gt 4000 ]; then refuse path-length "$lists/nothing"; fi
  if [ -s "$lists/names" ]; then look -files0-from "$lists/names" -maxdepth 0; fi
fi
for list in files folders closed large unreadable blocking setid linked; do plain_list "$list"; done
if [ -s "$lists/blocking" ]; then refuse blocking-file "$lists/blocking"; fi
shallow=0
grep -qzE '(/[^/]*){128}' "$lists/folders" || shallow=$?
if [ "$shallow" -ne 1 ]; then refuse depth "$lists/nothing"; fi

# The base without any stat data: git believes nothing and hashes every file that could have changed.
if [ -z "$upper" ]; then
  g read-tree "$base"
  tracked base
  g ls-files -s > "$lists/index-before"
else
  # Every entry of the folders concerned, and which of them are still what they were: a folder, or none.
  find . -mindepth 1 -maxdepth 1 \
    \( -type d -printf 'd %P\0' -o \( -type f -o -type l \) -printf 'f %P\0' \) > "$lists/there"
  if [ -s "$lists/folders" ]; then
    find -files0-from "$lists/folders" -mindepth 1 -maxdepth 1 \
      \( -type d -printf 'd %p\0' -o \( -type f -o -type l \) -printf 'f %p\0' \) >> "$lists/there"
  fi
  sort_list there
  g ls-tree -z "$base" > "$lists/entries"
  if [ -s "$lists/folders" ]; then
    GIT_LITERAL_PATHSPECS=1 xargs -0 -n 500 git ls-tree -z "$base" -- < "$lists/folders" >> "$lists/entries"
  fi
  sed -z -n 's/^[0-9]* tree [0-9a-f]*\t/d /p; s/^[0-9]* blob [0-9a-f]*\t/f /p' "$lists/entries" |
    sort -z -u > "$lists/was"
  minus was there missing
  if [ -s "$lists/missing" ] || [ -s "$lists/closed" ]; then
    { sed -z -n 's,^d \(.*\)$,\1/,p' "$lists/missing"; cat "$lists/closed"; } > "$lists/emptied"
    GIT_LITERAL_PATHSPECS=1 xargs -0 -r -n 500 git ls-tree -z -r "$base" -- < "$lists/emptied" > "$lists/removed"
  fi
  sed -z -n '/^[0-9]* tree /!p' "$lists/entries" "$lists/removed" > "$lists/all"
  g update-index -z --index-info < "$lists/all"
  tracked base
  # Neither looked at above nor missing: not to be looked at below.
  suspects=files
  if [ -s "$lists/missing" ] || [ -s "$lists/removed" ]; then
    suspects=suspects
    { cat "$lists/files"; sed -z -n 's/^f //p' "$lists/missing"; sed -z 's/^[^\t]*\t//' "$lists/removed"; } |
      sort -z -u > "$lists/suspects"
  fi
  minus base "$suspects" untouched
  g update-index -z --assume-unchanged --stdin < "$lists/untouched"
  g ls-files -s > "$lists/index-before"
fi
both large base refused
if [ -s "$lists/refused" ]; then refuse file-size "$lists/refused"; fi
# git would look for a repository in a folder that has taken the place of a file, and in that of a gitlink: what lies
# there is the agent's, and could be a FIFO that never ends.
: > "$lists/gitlinks"
if grep -q '^160000 ' "$lists/index-before"; then
  g ls-files -s -z > "$lists/entries"
  sed -z -n 's/^160000 [^\t]*\t//p' "$lists/entries" > "$lists/gitlinks"
  g update-index -z --assume-unchanged --stdin < "$lists/gitlinks"
fi
sed -z 's,/$,,' "$lists/folders" | sort -z > "$lists/places"
both places base replaced
minus replaced gitlinks swapped
if [ -s "$lists/swapped" ]; then g update-index -z --force-remove --stdin < "$lists/swapped"; fi
g update-index -q --ignore-submodules --refresh > /dev/null || true
g diff-files -z --name-only --ignore-submodules=all > "$lists/changed"
minus changed unreadable readable
minus readable files lost
sort -z -m "$lists/lost" "$lists/swapped" > "$lists/gone"
both readable files edited

# What is new and not ignored. The index plays no part in the question: what it holds is not asked about. The ./
# keeps a name that starts with a colon from being read as pathspec magic.
minus files base untracked
: > "$lists/ignored"
if [ -s "$lists/untracked" ]; then
  xargs -0 -r printf './%s\0' < "$lists/untracked" > "$lists/asked"
  g check-ignore -z --no-index --stdin < "$lists/asked" > "$lists/answered" || [ $? -eq 1 ]
  cut -z -c 3- "$lists/answered" > "$lists/ignored"
fi
minus untracked ignored new

# A gitlink of the base stays as it is. What lies at, below or across its path is not carried.
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
both new claimed dropped
find_all gitlink dropped "$lists/dropped"
minus new claimed add
both add large refused
if [ -s "$lists/refused" ]; then refuse file-size "$lists/refused"; fi
if [ -s "$lists/add" ]; then
  longest=$(tr -c '\0' x < "$lists/add" | tr '\0' '\n' | wc -L)
  if [ "$longest" -gt 4000 ]; then refuse path-length "$lists/nothing"; fi
fi

# Changed attributes change how every file is read. A file whose bytes are what the base's attributes make of the
# base has not been changed by anybody.
if [ -s "$lists/edited" ] &&
  grep -qzE '(^|/)\.gitattributes$' "$lists/edited" "$lists/gone" "$lists/untracked"; then
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
  # What may be refused is said first: no number of other findings can push it out.
  find_all driver reported "$lists/driven" first
  both carried setid found
  find_all set-id reported "$lists/found"
  both carried linked found
  find_all hard-link reported "$lists/found"
fi

if [ -s "$lists/gone" ]; then g update-index -z --force-remove --stdin < "$lists/gone"; fi
if [ -s "$lists/edited" ]; then g update-index -z --stdin < "$lists/edited"; fi
# Names that git itself never takes (aliases of .git, a .gitmodules that is a link) are passed over by it.
if [ -s "$lists/add" ]; then
  g update-index --add -z --stdin < "$lists/add"
  tracked taken
  minus add taken rejected
  find_all unsafe-name dropped "$lists/rejected"
fi

made=
if [ -z "$upper" ]; then
  tree=$(g write-tree)
else
  # What is gone first, then what is there: a folder may have become a file, or a file a folder.
  g ls-files -s > "$lists/index-after"
  sort -o "$lists/index-before" "$lists/index-before"
  sort -o "$lists/index-after" "$lists/index-after"
  comm -13 "$lists/index-before" "$lists/index-after" | sed 's/^\([0-9]*\) \([0-9a-f]*\) 0\t/M \1 \2 /' > "$lists/put"
  if [ -s "$lists/gone" ]; then
    cut -f 2- "$lists/index-before" | sort > "$lists/paths-before"
    cut -f 2- "$lists/index-after" | sort > "$lists/paths-after"
    comm -23 "$lists/paths-before" "$lists/paths-after" | sed 's/^/D /' > "$lists/take"
  fi
  tree=$base
  if [ -s "$lists/put" ] || [ -s "$lists/take" ]; then
    cp "$metadata/config" "$lists/git/config"
    printf 'ref: refs/heads/made\n' > "$lists/git/HEAD"
    { printf 'commit refs/heads/made\ncommitter x <x> 0 +0000\ndata 0\nM 040000 %s ""\n' "$base"
      cat "$lists/take" "$lists/put"
      printf '\ndone\n'; } > "$lists/import"
    GIT_DIR="$lists/git" g fast-import --quiet --done < "$lists/import" > /dev/null
    GIT_DIR="$lists/git" g rev-parse 'refs/heads/made^{commit}' 'refs/heads/made^{tree}' > "$lists/ids"
    { read -r made; read -r tree; } < "$lists/ids"
  fi
fi
# Exactly the new objects. On read-only storage git cannot refresh the time of an object it has and writes it
# once more, so what the base holds is taken out again, and so is the commit that only carried the tree.
objects=0
if [ "$tree" != "$base" ]; then
  find "$out/objects" -type f -path '*/[0-9a-f][0-9a-f]/*' -printf '%P\n' > "$lists/loose"
  for index in "$out"/objects/pack/*.idx; do  # git packs large files, and what it imports, at once
    if [ -e "$index" ]; then g show-index < "$index" >> "$lists/packed"; fi
  done
  { tr -d / < "$lists/loose"; sed "/ $made /d; s/^[^ ]* //; s/ .*//" "$lists/packed"; } | sort -u > "$lists/objects"
  GIT_OBJECT_DIRECTORY="$metadata/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES='' \
    g cat-file --batch-check='%(objecttype) %(objectname)' < "$lists/objects" > "$lists/checked"
  sed -n 's/ missing$//p' "$lists/checked" > "$lists/pack"
  g pack-objects --stdout --delta-base-offset -q < "$lists/pack" > "$out/result.pack"
  objects=$(wc -l < "$lists/pack")
fi
found=$((($(count "$lists/first") + $(count "$lists/findings")) / 4)) more=0
if [ "$found" -gt 200 ]; then more=$((found - 200)); fi
printf '%s\0' cofferdam-snapshot/1 tree "$tree" objects "$objects" ignored "$(count "$lists/ignored")"
sort_list ignored
if [ -s "$lists/ignored" ]; then head -z -n 200 "$lists/ignored" | xargs -0 printf 'path\0%s\0'; fi
cat "$lists/first" "$lists/findings" > "$lists/said"
if [ -s "$lists/said" ]; then head -z -n 800 "$lists/said"; fi
printf '%s\0' more "$more" end
)sh";

}  // namespace cofferdam::handoff
