// The box in which an archive is parsed: no network, no storage, one descriptor in, one out, bounded bytes,
// memory and time.
//
// Thread rules: pure functions.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/profile.h"
#include "image/stream.h"

namespace cofferdam::image {

struct UnpackInput {
  // What the archive is: Debian packages, one behind the other, of these sizes; none: an image, as `docker
  // save` or an OCI layout has it.
  std::vector<std::uint64_t> package_sizes = {};
  // "path:text" of links that are made if nothing is there; with packages only.
  std::vector<std::string> links = {};
  TreeBounds bounds = {};
  std::uint64_t memory_bytes = 2ULL << 30U;  // address space
  std::chrono::milliseconds deadline = std::chrono::minutes(15);
  int archive_fd = -1;  // borrowed; a regular file, read by its offsets
  int stream_fd = -1;   // borrowed; open for writing
};

inline constexpr const char* kPython = "/usr/bin/python3";

std::vector<std::string> unpack_argv(const UnpackInput& input);
contract::Profile unpack_profile(const UnpackInput& input);
// What the script has printed: how many devices were left out. Code::denied with its reason when it refused.
Result<std::uint64_t> read_verdict(std::string_view output);

}  // namespace cofferdam::image
