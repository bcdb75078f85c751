#include "handoff/keep.h"

#include "handoff/box_profile.h"

namespace cofferdam::handoff {
namespace {

// tar(1) ends with 1 for a file that changed and with 2 for one that it could not read: the others are there.
constexpr const char* kKeepScript = R"sh(
cd "$1" || exit 3
tar --create --sparse --one-file-system --numeric-owner --exclude=./.git --file=- . >&3
[ $? -le 2 ]
)sh";

// A header of 512 bytes for each file, and padding.
constexpr std::uint64_t kBytesPerFile = 2048;

}  // namespace

contract::Profile keep_profile(const KeepInput& input) {
  contract::Profile profile = box_profile(
      "keep", {"/bin/sh", "-c", kKeepScript, "keep", input.overlay ? "/upper" : "/workspace"}, input);
  profile.work = contract::Access::read_only;
  if (input.overlay) profile.upper = contract::Access::read_only;
  profile.file_size_limit = input.work_bytes + input.work_inodes * kBytesPerFile + (1ULL << 20U);
  profile.fds.push_back({input.archive_fd, 3});
  return profile;
}

}  // namespace cofferdam::handoff
