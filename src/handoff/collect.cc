#include "handoff/collect.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "handoff/box_profile.h"
#include "handoff/record.h"

namespace cofferdam::handoff {
namespace {

constexpr std::size_t kMaxTarget = 4096;  // PATH_MAX: a longer text cannot be followed

// POSIX sh, coreutils, findutils and git. Order matters at the end: a record with "end" says that both files
// went out in full.
constexpr const char* kCollectScript = R"sh(
set -eu
umask 077
metadata=$1 out=$2 scratch=$3 base=$4 tree=$5 max_pack=$6 max_inflated=$7 max_paths=$8
shift 8
max_depth=$1 max_memory_kib=$2 max_cpu=$3
export LC_ALL=C
ulimit -v "$max_memory_kib"
ulimit -t "$max_cpu"
quarantine=$scratch/collect
export TMPDIR="$quarantine"
# No index: diff-tree(1) would read the one of the whole tree.
export GIT_DIR="$metadata" GIT_OBJECT_DIRECTORY="$quarantine/objects" GIT_INDEX_FILE="$quarantine/index-of-nothing"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$metadata/objects"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
export GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none
if [ -e "$quarantine" ]; then rm -rf "$quarantine"; fi
mkdir -p "$quarantine/objects/pack"

g() {
  git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.commitGraph=false -c gc.auto=0 \
    -c core.protectHFS=true -c core.protectNTFS=true -c protocol.allow=never -c pack.threads=1 \
    -c pack.writeReverseIndex=false -c core.bigFileThreshold=16777216 -c core.packedGitWindowSize=16777216 \
    -c core.packedGitLimit=268435456 -c core.deltaBaseCacheLimit=33554432 "$@"
}
refuse() { printf '%s\0' cofferdam-collect/1 refused "$1" "$2" end; exit 0; }

pack="$out/result.pack"
if [ -L "$pack" ] || ! [ -f "$pack" ]; then refuse pack 'there is no pack'; fi
if [ "$(wc -c < "$pack")" -gt "$max_pack" ]; then refuse pack-bytes ''; fi
if ! g index-pack --strict --fsck-objects --max-input-size="$max_pack" --stdin \
  < "$pack" > /dev/null 2> "$quarantine/said"; then
  refuse pack "$(head -n 1 "$quarantine/said" | head -c 300)"
fi
set -- "$quarantine"/objects/pack/*.pack
[ $# -eq 1 ]
pack=$1 index=${1%.pack}.idx
g show-index < "$index" > "$quarantine/index"
cut -d ' ' -f 2 "$quarantine/index" > "$quarantine/ids"
g cat-file --batch-check='%(objectsize)' < "$quarantine/ids" > "$quarantine/sizes"
inflated=0
while read -r size; do inflated=$((inflated + size)); done < "$quarantine/sizes"
if [ "$inflated" -gt "$max_inflated" ]; then refuse inflated-bytes ''; fi
if [ "$(g cat-file -t "$tree" 2> /dev/null)" != tree ]; then refuse tree ''; fi

# Trees that repeat each other can name more paths than would ever fit: the listing is bounded in memory and in
# length, and one that failed or was cut is refused.
if [ "$max_memory_kib" -gt 1048576 ]; then max_memory_kib=1048576; fi
{ (ulimit -v "$max_memory_kib"; g diff-tree -r -z --no-renames --raw --full-index "$base" "$tree" 2> /dev/null) ||
  printf x > "$quarantine/failed"; } |
  head -c 67108864 | head -z -n $((2 * max_paths + 1)) > "$quarantine/changes"
fields=$(tr -cd '\0' < "$quarantine/changes" | wc -c)
if [ "$fields" -gt $((2 * max_paths)) ] || [ "$(wc -c < "$quarantine/changes")" -ge 67108864 ]; then
  refuse paths ''
fi
if [ -e "$quarantine/failed" ]; then refuse listing ''; fi
shallow=0
grep -qzE "(/[^/]*){$((max_depth + 1))}" "$quarantine/changes" || shallow=$?
if [ "$shallow" -ne 1 ]; then refuse depth ''; fi

# Where changed symbolic links lead. A path can look like the head of a change: then one object too many is asked for.
sed -z -n 's/^:[0-9]* 120000 [0-9a-f]* \([0-9a-f]\{40,64\}\) [A-Z]$/\1/p' "$quarantine/changes" \
  > "$quarantine/links"
if [ -s "$quarantine/links" ]; then
  tr '\0' '\n' < "$quarantine/links" | sort -u > "$quarantine/link-ids"
  g cat-file --batch-check < "$quarantine/link-ids" > "$quarantine/link-sizes"
  while read -r id type size; do
    if [ "$type" = blob ] && [ "$size" -le 4096 ]; then printf '%s\n' "$id"; fi
  done < "$quarantine/link-sizes" > "$quarantine/short"
  g cat-file --batch < "$quarantine/short" > "$quarantine/targets"
  head -c 4194304 "$quarantine/targets" > "$quarantine/links"
fi

# What lies beside what is new, on the way down to it: names that differ in their case alone are one file on many
# hosts. A listing that is cut off at its end names some.
: > "$quarantine/beside"
sed -z -n '/^:000000 .* A$/{n;p;b}; n' "$quarantine/changes" > "$quarantine/added"
if [ -s "$quarantine/added" ]; then
  sed -z -n ':up; s,/[^/]*$,,; T; p; b up' "$quarantine/added" | sort -z -u | head -z -n 4096 | sed -z 's,$,/,' \
    > "$quarantine/folders"
  { g ls-tree -z --name-only "$tree"
    GIT_LITERAL_PATHSPECS=1 xargs -0 -r -n 500 git ls-tree -z --name-only "$tree" -- < "$quarantine/folders"; } |
    head -c 4194304 > "$quarantine/beside"
fi

cat "$pack" >&3
cat "$index" >&4
printf '%s\0' cofferdam-collect/1 pack-bytes "$(wc -c < "$pack")" objects "$(wc -l < "$quarantine/ids")" \
  inflated "$inflated" changes
cat "$quarantine/changes"
printf '%s\0' links "$(wc -c < "$quarantine/links")"
cat "$quarantine/links"
printf '%s\0' beside "$(wc -c < "$quarantine/beside")"
cat "$quarantine/beside"
printf '%s\0' end
)sh";

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == ".." || part == ".git") return false;
  }
  return true;
}

bool is_mode(std::string_view mode) {
  constexpr std::array kModes = {"000000", "100644", "100664", "100755", "120000", "160000"};
  return std::find(kModes.begin(), kModes.end(), mode) != kModes.end();
}

const char* status_word(char letter) {
  switch (letter) {
    case 'A':
      return "added";
    case 'M':
      return "modified";
    case 'D':
      return "deleted";
    case 'T':
      return "type-changed";
    default:
      return nullptr;
  }
}

// ":<old mode> <new mode> <old id> <new id> <letter>", then the path: git-diff-tree(1), raw output.
Result<Change> decode_change(RecordReader* reader) {
  TRY(std::string_view head, reader->text());
  TRY(std::string_view path, reader->text());
  std::vector<std::string> parts = split(head, ' ');
  const bool shaped = starts_with(head, ":") && parts.size() == 5 && parts[4].size() == 1 &&
                      is_mode(std::string_view(parts[0]).substr(1)) && is_mode(parts[1]) &&
                      is_object_id(parts[2]) && is_object_id(parts[3]);
  if (!shaped) return reader->broken("not a change: '" + printable(head, 200) + "'");
  const char* status = status_word(parts[4][0]);
  if (status == nullptr) return reader->broken("unknown kind of change");
  if (!is_plain_path(path)) return make_error(Code::denied, "a path is not plain: " + printable(path, 500));
  if (parts[0] == ":160000" || parts[1] == "160000") {
    return make_error(Code::denied, "a gitlink was added, moved or removed: " + printable(path, 500));
  }
  return Change{{std::string(path), status}, parts[1], parts[3]};
}

// "<id> blob <size>\n<bytes>\n" or "<id> missing\n" each: git-cat-file(1), --batch. The list may be cut off
// at its end; what cannot be read any more is left out, and nobody takes a link for harmless whose target is
// not known.
std::map<std::string, std::string> decode_links(std::string_view bytes) {
  std::map<std::string, std::string> links;
  while (!bytes.empty()) {
    constexpr std::size_t kMaxHead = 100;
    const std::size_t end = bytes.substr(0, kMaxHead).find('\n');
    if (end == std::string_view::npos) break;
    const std::vector<std::string> head = split(bytes.substr(0, end), ' ');
    bytes.remove_prefix(end + 1);
    if (head.size() == 2 && head[1] == "missing") continue;
    if (head.size() != 3 || head[2].empty() || head[2].size() > 9 ||
        head[2].find_first_not_of("0123456789") != std::string::npos)
      break;
    const std::size_t size = std::stoul(head[2]);
    if (bytes.size() < size + 1) break;
    if (head[1] == "blob" && is_object_id(head[0]) && size <= kMaxTarget) {
      links[head[0]] = std::string(bytes.substr(0, size));
    }
    bytes.remove_prefix(size + 1);
  }
  return links;
}

}  // namespace

std::vector<std::string> collect_argv(const CollectInput& input, const ScriptPaths& paths) {
  const CollectBounds& bounds = input.bounds;
  return {"/bin/sh",
          "-c",
          kCollectScript,
          "collect",
          paths.metadata,
          paths.output,
          paths.scratch,
          input.base_tree,
          input.tree,
          std::to_string(bounds.pack_bytes),
          std::to_string(bounds.inflated_bytes),
          std::to_string(bounds.paths),
          std::to_string(bounds.depth),
          std::to_string(bounds.memory_bytes / 1024),
          std::to_string(bounds.cpu_seconds)};
}

contract::Profile collect_profile(const CollectInput& input) {
  contract::Profile profile = box_profile("collect", collect_argv(input, ScriptPaths{}), input);
  profile.cwd = "/";
  profile.output = contract::Access::read_only;
  // The two descriptors lead to files of the host: what a box can write there is bounded by the kernel. An
  // index of very small objects is larger than its pack.
  profile.file_size_limit = 2 * input.bounds.pack_bytes + (64ULL << 20U);
  if (input.stdout_fd >= 0) profile.fds.push_back({input.stdout_fd, 1});
  if (input.stderr_fd >= 0) profile.fds.push_back({input.stderr_fd, 2});
  if (input.pack_fd >= 0) profile.fds.push_back({input.pack_fd, 3});
  if (input.index_fd >= 0) profile.fds.push_back({input.index_fd, 4});
  return profile;
}

Result<Collected> decode_collect(std::string_view bytes) {
  RecordReader reader(bytes, "collect");
  if (bytes.size() > kMaxCollectRecord) return reader.broken("the record is too long");
  TRY_VOID(reader.literal("cofferdam-collect/1"));
  TRY_VOID(check_refusal(&reader));
  Collected collected;
  TRY_VOID(reader.literal("pack-bytes"));
  TRY(collected.pack_bytes, reader.number());
  TRY_VOID(reader.literal("objects"));
  TRY(collected.objects, reader.number());
  TRY_VOID(reader.literal("inflated"));
  TRY(collected.inflated_bytes, reader.number());
  TRY_VOID(reader.literal("changes"));
  while (!reader.next_is("links")) {
    TRY(Change change, decode_change(&reader));
    collected.changes.push_back(std::move(change));
  }
  TRY_VOID(reader.literal("links"));
  TRY(const std::uint64_t link_bytes, reader.number());
  TRY(const std::string_view links, reader.bytes(link_bytes));
  collected.links = decode_links(links);
  TRY_VOID(reader.literal("beside"));
  TRY(const std::uint64_t beside_bytes, reader.number());
  TRY(const std::string_view beside, reader.bytes(beside_bytes));
  // The last one may be cut off.
  collected.beside = split(beside.substr(0, beside.rfind('\0') + 1), '\0');
  TRY_VOID(reader.end());
  return collected;
}

}  // namespace cofferdam::handoff
