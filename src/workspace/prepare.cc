#include "workspace/prepare.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/text.h"

namespace cofferdam::workspace {
namespace {

// $1 object format, $2 head, $3 branch, $4 sizes of packs and indexes, $5 where the history is cut. Only
// fixed text runs; what is variable are validated ids and our own branch name, as arguments. The
// configuration is complete here: nothing is read from anywhere else.
//
// After the checkout every file gets one fixed time in the past: entries as old as the index itself would be
// hashed again by every `git status` ("racily clean", git's Documentation/technical/racy-git).
constexpr const char* kScript = R"sh(set -eu
umask 022
cd /workspace
git=/workspace/.git
mkdir -p "$git/objects/pack" "$git/objects/info" "$git/refs/heads" "$git/info"
version=0
if [ "$1" = sha256 ]; then version=1; fi
{
  printf '[core]\n\trepositoryformatversion = %s\n\tfilemode = true\n\tbare = false\n' "$version"
  printf '\tlogallrefupdates = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n'
  printf '\tprotectHFS = true\n\tprotectNTFS = true\n\tsymlinks = true\n\tignorecase = false\n'
  printf '[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n'
  if [ "$1" = sha256 ]; then printf '[extensions]\n\tobjectformat = sha256\n'; fi
} > "$git/config"
printf 'ref: refs/heads/%s\n' "$3" > "$git/HEAD"
mkdir -p "$git/refs/heads/$(dirname "$3")"
printf '%s\n' "$2" > "$git/refs/heads/$3"
n=0
for size in $4; do
  end=pack
  if [ $((n % 2)) = 1 ]; then end=idx; fi
  head -c "$size" <&3 > "$git/objects/pack/pack-base$((n / 2)).$end"
  n=$((n + 1))
done
exec 3<&-
if [ -n "$5" ]; then printf '%s\n' $5 > "$git/shallow"; fi
git read-tree "$2"
git checkout-index --all --index --force --quiet
find . -path ./.git -prune -o \( -type f -o -type l \) -exec touch -h -d @1000000000 {} +
git update-index -q --refresh
git write-tree
)sh";

Status append_file(const std::string& path, int to, std::string* sizes) {
  TRY(const UniqueFd from, open_file(path, O_RDONLY));
  std::uint64_t size = 0;
  for (;;) {
    const ssize_t sent = ::sendfile(to, from.get(), nullptr, 1U << 30U);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return sys_error("cannot copy " + path, errno);
    if (sent == 0) break;
    size += static_cast<std::uint64_t>(sent);
  }
  sizes->append(sizes->empty() ? "" : " ").append(std::to_string(size));
  return {};
}

}  // namespace

Result<GatheredPacks> gather_packs(const contract::BasePacks& packs, const std::string& folder) {
  GatheredPacks gathered;
  const std::string path = folder + "/packs-" + random_hex(8);
  TRY(gathered.file, open_file(path, O_RDWR | O_CREAT | O_EXCL));
  if (::unlink(path.c_str()) != 0) return sys_error(path, errno);
  for (const std::string& pack : packs.packs) {
    TRY_VOID(append_file(pack, gathered.file.get(), &gathered.sizes));
    TRY_VOID(append_file(contract::index_of(pack), gathered.file.get(), &gathered.sizes));
  }
  if (::lseek(gathered.file.get(), 0, SEEK_SET) != 0) return sys_error("lseek", errno);
  return gathered;
}

contract::Profile prepare_profile(const contract::Invocation& invocation,
                                  const contract::CloneIdentity& clone, const std::string& branch,
                                  int packs_fd, const std::string& sizes,
                                  const std::vector<std::string>& shallow) {
  std::string cut;
  for (const std::string& id : shallow) cut.append(cut.empty() ? "" : " ").append(id);
  contract::Profile profile;
  profile.kind = "prepare";
  profile.argv = {"/bin/sh", "-c", kScript, "prepare", clone.object_format, clone.base, branch, sizes, cut};
  profile.env = {"PATH=/usr/bin:/bin",
                 "HOME=/home/agent",
                 "LC_ALL=C",
                 "GIT_CONFIG_NOSYSTEM=1",
                 "GIT_CONFIG_GLOBAL=/dev/null",
                 "GIT_ATTR_NOSYSTEM=1",
                 "GIT_TERMINAL_PROMPT=0",
                 "GIT_NO_LAZY_FETCH=1",
                 "GIT_NO_REPLACE_OBJECTS=1"};
  profile.work = contract::Access::read_write;
  profile.metadata = contract::Access::read_write;
  profile.scratch_bytes = 64U << 20U;
  profile.scratch_inodes = 4096;
  profile.work_bytes = invocation->limits.work_bytes;
  profile.work_inodes = invocation->limits.work_inodes;
  profile.deadline = std::chrono::minutes(10);
  profile.fds = {{packs_fd, 3}};
  return profile;
}

Status check_prepared(std::string_view output, const contract::CloneIdentity& clone) {
  if (trim(output) == clone.tree) return {};
  return make_error(Code::protocol, "the prepared work tree is not the tree of " + clone.base);
}

}  // namespace cofferdam::workspace
