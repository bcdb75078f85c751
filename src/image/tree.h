// What is in a folder tree, as text that is the same wherever the tree lies: the manifest, whose SHA-256 is
// the image's name. And what stat(2) says of it, which tells cheaply whether anybody has touched it since.
//
// Every file is reached by openat(2) from its folder and no link is ever followed: the tree came out of an
// archive that somebody else made.
//
// Thread rules: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::image {

inline constexpr std::size_t kMaxDepth = 64;         // folders above a file
inline constexpr std::size_t kMaxEntries = 500'000;  // files, folders and links

// The manifest: a first line with its format, then one line per entry, sorted by the bytes of its path:
//   <d|f|l> <mode, octal> <size> <SHA-256 of the content> <path>[ <text of the link>]
// with "-" for what an entry does not have, and bytes that are not printable, spaces and percent signs as
// %XX. Owners, times and extended attributes are not in it. Reads every byte. Code::protocol for anything
// that is no file, folder or link, or lies too deep.
Result<std::string> manifest_of(const std::string& tree);
// The paths that two manifests do not have alike, at most `max`: for messages.
std::vector<std::string> differences(std::string_view left, std::string_view right, std::size_t max);

struct StatFacts {
  std::string sha256;  // over path, inode, mode, owner, size, mtime and ctime of every entry
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;             // of the files' contents
  std::vector<std::string> landmarks;  // regular files below usr, at most kLandmarks
};
inline constexpr std::size_t kLandmarks = 16;
// Opens folders only.
Result<StatFacts> stat_of(const std::string& tree);

}  // namespace cofferdam::image
