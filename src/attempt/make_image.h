// Images, from what they are made of to their place in the state folder: image/ has the parts, and what is in
// archives is parsed in a box.
#pragma once

#include <string>

#include "attempt/run.h"
#include "base/result.h"

namespace cofferdam::attempt {

struct MadeImage {
  std::string id;
  std::uint64_t dropped = 0;  // devices that were left out
};

// From a list of packages and agents (image/lock_file.h), which the machine's apt downloads.
Result<MadeImage> build_image(const Host& host, const std::string& lock_path);
// From an archive of `docker save`, or an OCI layout in a tar.
Result<MadeImage> import_image(const Host& host, const std::string& archive_path);
// Writes the pins of a list anew, from what apt and the agents folder have now.
Status lock_image(const Host& host, const std::string& lock_path);

}  // namespace cofferdam::attempt
