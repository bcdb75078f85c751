// A disk of an attempt's own: an ext4 file system in a file of the host that has no name, on a loop device
// that goes with the mount. For a supervisor that is root. Nothing is left behind however anybody ends: the
// kernel gives mount, loop device and file back with the last descriptor or namespace that holds the mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace cofferdam::workspace {

// Below these an ext4 file system has no room for itself.
inline constexpr std::uint64_t kLeastImageBytes = 2ULL << 20U;
inline constexpr std::uint64_t kLeastImageInodes = 64;

// What mke2fs(8) is asked for so that there are never more than that many bytes and inodes: it rounds inodes
// up to whole blocks of each block group. Pure; `file` is its last argument.
std::vector<std::string> plan_mke2fs(std::uint64_t bytes, std::uint64_t inodes, const UserIds& owner,
                                     const std::string& file);

// Whether this host has what it takes: loop devices and mke2fs.
bool can_make_images();

// Makes the file system in an open, empty file, and takes all of its bytes from the disk.
Status fill_image(int image, std::uint64_t bytes, std::uint64_t inodes, const UserIds& owner);
// A mount of it that is in no tree yet.
Result<UniqueFd> mount_image(int image);

// Both, of a file without a name: a mount that is in no tree yet (host_mount.h). All of its bytes are taken
// from the disk of `folder` here, so that a later write cannot fail for the host's sake. Code::exhausted when
// they are not there.
Result<UniqueFd> make_image(const std::string& folder, std::uint64_t bytes, std::uint64_t inodes,
                            const UserIds& owner);

}  // namespace cofferdam::workspace
