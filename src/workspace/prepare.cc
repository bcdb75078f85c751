#include "workspace/prepare.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/text.h"

namespace cofferdam::workspace {
namespace {

// $1 head; for a cached tree $2 and $3, the most bytes and files. Only fixed text runs; what is variable are
// validated ids and numbers, as arguments. The metadata, the configuration with them, are there already.
//
// After the checkout every file gets one fixed time in the past: entries as old as the index itself would be
// hashed again by every `git status` ("racily clean", git's Documentation/technical/racy-git).
//
// The second reading of a cached tree compares content, whatever git's index believes: a file that hashes to
// something else (a text file that is not stored as its attributes say, which is how it is in every clone)
// must be what git makes of its blob, byte by byte.
constexpr const char* kScript = R"sh(set -eu
umask 022
cd /workspace
if [ $# -gt 1 ]; then
  git ls-tree -r -l "$1" | {
    bytes=0 files=0
    while read -r mode kind id size name; do
      files=$((files + 1))
      case $size in *[!0-9]*) ;; *) bytes=$((bytes + size)) ;; esac
    done
    if [ "$bytes" -gt "$2" ] || [ "$files" -gt "$3" ]; then
      echo "it has $files files and $bytes bytes, and the disk has room for $3 and $2" >&2
      exit 1
    fi
  }
fi
git read-tree "$1"
git checkout-index --all --index --force --quiet
find . -path ./.git -prune -o \( -type f -o -type l \) -exec touch -h -d @1000000000 {} +
git update-index -q --refresh
if [ $# -gt 1 ]; then
  GIT_INDEX_FILE=/workspace/.git/second
  export GIT_INDEX_FILE
  git read-tree "$1"
  git update-index -q --really-refresh
  git diff-files -z --name-only --ignore-submodules=all > .git/differs
  xargs -0 -r -n 1 sh -c 'git cat-file --filters "$0:$1" | cmp -s - "./$1" || exit 255' "$1" < .git/differs
  unset GIT_INDEX_FILE
  cat .git/index >&3
fi
git write-tree
)sh";

// Whatever the modes: the one user of the box owns everything. Folders are opened up on the way down.
constexpr const char* kEmptyScript = R"sh(set -eu
cd /workspace
find . -type d ! -perm -u=rwx -exec chmod u+rwx {} \;
find . -mindepth 1 -delete
test -z "$(ls -A)"
)sh";

contract::Profile checkout_profile(const contract::CloneIdentity& clone) {
  contract::Profile profile;
  profile.kind = "prepare";
  profile.argv = {"/bin/sh", "-c", kScript, "prepare", clone.base};
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
  profile.deadline = std::chrono::minutes(10);
  return profile;
}

}  // namespace

contract::Profile prepare_profile(const contract::Invocation& invocation,
                                  const contract::CloneIdentity& clone) {
  contract::Profile profile = checkout_profile(clone);
  profile.work_bytes = invocation->limits.work_bytes;
  profile.work_inodes = invocation->limits.work_inodes;
  return profile;
}

contract::Profile make_tree_profile(const contract::CloneIdentity& clone, const TreeBounds& bounds,
                                    int index_fd) {
  contract::Profile profile = checkout_profile(clone);
  profile.argv.push_back(std::to_string(bounds.bytes));
  profile.argv.push_back(std::to_string(bounds.files));
  profile.file_size_limit = bounds.bytes;
  profile.fds = {{index_fd, 3}};
  return profile;
}

contract::Profile empty_profile() {
  contract::Profile profile;
  profile.kind = "empty";
  profile.argv = {"/bin/sh", "-c", kEmptyScript, "empty"};
  profile.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  profile.work = contract::Access::read_write;
  profile.scratch_bytes = 1U << 20U;
  profile.scratch_inodes = 64;
  profile.deadline = std::chrono::minutes(10);
  return profile;
}

Status check_prepared(std::string_view output, const contract::CloneIdentity& clone) {
  if (trim(output) == clone.tree) return {};
  return make_error(Code::protocol, "the prepared work tree is not the tree of " + clone.base);
}

}  // namespace cofferdam::workspace
