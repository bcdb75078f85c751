#include "image/unpack.h"

#include "base/text.h"
#include "image/unpack_script.h"

namespace cofferdam::image {

std::vector<std::string> unpack_argv(const UnpackInput& input) {
  const bool debian = !input.package_sizes.empty();
  // -I: nothing of the environment or of a user; -B: nothing is written beside a module.
  std::vector<std::string> argv = {kPython,
                                   "-IB",
                                   "-c",
                                   kUnpackScript,
                                   debian ? "debian" : "image",
                                   std::to_string(input.bounds.bytes),
                                   std::to_string(input.bounds.entries),
                                   std::to_string(input.bounds.depth),
                                   std::to_string(input.memory_bytes)};
  for (const std::uint64_t size : input.package_sizes) argv.push_back(std::to_string(size));
  for (const std::string& link : input.links) argv.push_back("link:" + link);
  return argv;
}

contract::Profile unpack_profile(const UnpackInput& input) {
  contract::Profile profile;
  profile.kind = "unpack";
  profile.argv = unpack_argv(input);
  profile.env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C.UTF-8"};
  profile.cwd = "/";
  profile.metadata = contract::Access::read_only;
  profile.scratch_bytes = 1U << 20U;
  profile.scratch_inodes = 64;
  profile.deadline = input.deadline;
  profile.grace = std::chrono::seconds(2);
  // The kernel's bound on the stream: contents, and at most a path and a text for each entry.
  profile.file_size_limit = input.bounds.bytes + input.bounds.entries * 512 + (64ULL << 20U);
  if (input.archive_fd >= 0) profile.fds.push_back({input.archive_fd, 3});
  if (input.stream_fd >= 0) profile.fds.push_back({input.stream_fd, 4});
  return profile;
}

Result<std::uint64_t> read_verdict(std::string_view output) {
  const std::string line(trim(output));
  if (starts_with(line, "refused: ")) {
    return make_error(Code::denied, "the archive is refused: " + printable(line.substr(9), 500));
  }
  if (!starts_with(line, "ok ") || line.size() > 16 || line.size() < 4 ||
      line.find_first_not_of("0123456789", 3) != std::string::npos)
    return make_error(Code::protocol, "the unpack box ended without a verdict");
  return std::stoull(line.substr(3));
}

}  // namespace cofferdam::image
