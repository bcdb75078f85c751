// A folder tree as one stream of records, which is what comes out of the box in which an archive is parsed:
//
//   "cofferdam-tree/1\0", then any of
//   "d" path "\0"                          a folder
//   "f" or "x" size "\0" path "\0" bytes   a file, or one that can be executed; the size is decimal
//   "h" path "\0" path "\0"                a file with the content of one that was before it
//   "l" path "\0" text "\0"                a symbolic link
//   "e"                                    the end; nothing follows
//
// Hostile like the archive: the reader takes plain relative paths only, makes everything anew, never follows
// a link, and stops at its bounds.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cofferdam::image {

struct TreeBounds {
  std::uint64_t bytes = 8ULL << 30U;  // of all files' contents
  std::uint64_t entries = 400'000;
  std::uint64_t depth = 60;  // components of a path
};

// Reads the stream from `fd` (borrowed; from its offset to its end) and makes the tree below `folder`, an
// empty folder of ours. Folders get the mode 0755, files 0644 or 0755: no set-id bit, no device, no owner but
// us. Code::protocol for what is not such a stream, Code::exhausted for a bound. What was made stays.
Status unpack_stream(int fd, const std::string& folder, const TreeBounds& bounds);

}  // namespace cofferdam::image
