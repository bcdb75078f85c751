// What an image is built from: a text file with one thing per line.
//
//   cofferdam-image-lock/1
//   want NAME              a Debian package that shall be in it
//   without NAME           one that a wanted one depends on, and that is left out all the same
//   link PATH TEXT         a symbolic link, made if no package has something there
//   agent NAME             an agent CLI, by the name of its npm package
//   --- what follows is written by `cofferdam image lock` ---
//   package NAME VERSION ARCHITECTURE SHA256
//   pinned NAME VERSION INTEGRITY SHA256     an agent: as package-lock.json has it; of its folder's manifest
//
// Lines that begin with # are comments.
//
// Thread rules: values; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::image {

struct LockedPackage {
  std::string name;
  std::string version;
  std::string architecture;
  std::string sha256;  // of the .deb
  bool operator==(const LockedPackage&) const = default;
};

struct LockedAgent {
  std::string name;
  std::string version;
  std::string integrity;  // of the npm package: "sha512-..."
  std::string sha256;     // of the manifest (tree.h) of its folder
  bool operator==(const LockedAgent&) const = default;
};

struct LockedLink {
  std::string path;  // relative to the root
  std::string text;
  bool operator==(const LockedLink&) const = default;
};

struct LockFile {
  std::vector<std::string> wanted;
  std::vector<std::string> without;
  std::vector<LockedLink> links;
  std::vector<std::string> agents;
  std::vector<LockedPackage> packages;
  std::vector<LockedAgent> pinned;
};

inline constexpr std::size_t kMaxLockBytes = 1U << 20U;

// Strict: Code::usage with the line of whatever is wrong.
Result<LockFile> parse_lock(std::string_view text, const std::string& shown_path);
// `old_text` with its head as it is, and everything written anew that is written by us.
std::string with_pins(std::string_view old_text, const LockFile& lock);

}  // namespace cofferdam::image
