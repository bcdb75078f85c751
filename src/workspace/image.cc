#include "workspace/image.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "workspace/host_mount.h"

namespace cofferdam::workspace {
namespace {

// Of ext4: what 6.1 has, and no journal, which an image that goes with its attempt does not need.
constexpr const char* kFeatures =
    "none,extent,filetype,flex_bg,large_file,huge_file,dir_nlink,extra_isize,sparse_super,metadata_csum,"
    "64bit,"
    "dir_index,ext_attr";

constexpr const char* kMke2fs = "/sbin/mke2fs";
constexpr const char* kLoopControl = "/dev/loop-control";
constexpr int kImageFd = 3;  // of mke2fs
constexpr std::uint64_t kInodeBytes = 256;

Status make_file_system(int image, std::uint64_t bytes, std::uint64_t inodes, const UserIds& owner) {
  SpawnOptions options;
  options.program = kMke2fs;
  options.argv = plan_mke2fs(bytes, inodes, owner, fmt::format("/proc/self/fd/{}", kImageFd));
  // Its defaults are ours, and not those of the host's mke2fs.conf.
  options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "MKE2FS_CONFIG=/dev/null"};
  options.fds = {{image, kImageFd}};
  CaptureLimits limits;
  limits.out_bytes = 1U << 20U;
  limits.time = std::chrono::minutes(2);
  TRY(const Captured made, run_capture(std::move(options), "", limits));
  if (made.status.success()) return {};
  return make_error(
      Code::io,
      fmt::format("mke2fs ended with {}: {}", made.status.describe(), printable(trim(made.err), 300)),
      "see whether limits.work_bytes and limits.work_inodes go together");
}

// A free loop device with the image on it: loop(4). It is released when its last user has gone.
Result<std::pair<UniqueFd, std::string>> attach_loop(int image) {
  constexpr int kMaxTries = 64;  // another process may take the device that we were told of
  TRY(const UniqueFd control, open_file(kLoopControl, O_RDWR));
  loop_config config{};
  config.fd = static_cast<__u32>(image);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return sys_error("cannot get a loop device", errno);
    const std::string path = fmt::format("/dev/loop{}", number);
    TRY(UniqueFd device, open_file(path, O_RDWR));
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return std::pair(std::move(device), path);
    if (errno != EBUSY) return sys_error("cannot set up " + path, errno);
  }
  return make_error(Code::exhausted, "no loop device is free", "raise max_loop of the kernel's loop module");
}

}  // namespace

std::vector<std::string> plan_mke2fs(std::uint64_t bytes, std::uint64_t inodes, const UserIds& owner,
                                     const std::string& file) {
  constexpr std::uint64_t kSmall = 64ULL << 20U;
  const std::uint64_t block = bytes < kSmall ? 1024 : 4096;
  const std::uint64_t group_blocks = block * 8;  // as many as one block has bits
  const std::uint64_t groups = std::max<std::uint64_t>(1, (bytes / block + group_blocks - 1) / group_blocks);
  const std::uint64_t step = std::max<std::uint64_t>(8, block / kInodeBytes);
  const std::uint64_t each = std::clamp(inodes / groups / step * step, step, group_blocks);
  return {"mke2fs",
          "-q",
          "-F",
          "-t",
          "ext4",
          "-b",
          std::to_string(block),
          "-I",
          std::to_string(kInodeBytes),
          "-N",
          std::to_string(each * groups),
          "-m",
          "0",
          "-O",
          kFeatures,
          "-E",
          fmt::format("nodiscard,lazy_itable_init=1,root_owner={}:{}", owner.uid, owner.gid),
          file};
}

bool can_make_images() {
  return ::access(kLoopControl, R_OK | W_OK) == 0 && ::access(kMke2fs, X_OK) == 0;
}

Status fill_image(int image, std::uint64_t bytes, std::uint64_t inodes, const UserIds& owner) {
  if (::ftruncate(image, static_cast<off_t>(bytes)) != 0) return sys_error("cannot make an image", errno);
  TRY_VOID(make_file_system(image, bytes, inodes, owner));
  if (::fallocate(image, 0, 0, static_cast<off_t>(bytes)) != 0) {
    return sys_error(fmt::format("cannot take {} bytes of the disk for an image", bytes), errno);
  }
  return {};
}

Result<UniqueFd> mount_image(int image) {
  TRY(const auto loop, attach_loop(image));
  auto mount = detached_ext4(loop.second);
  if (!mount) return std::move(mount).error().with("an image");
  return mount;
}

Result<UniqueFd> make_image(const std::string& folder, std::uint64_t bytes, std::uint64_t inodes,
                            const UserIds& owner) {
  TRY(const UniqueFd image, open_file(folder, O_TMPFILE | O_RDWR));
  TRY_VOID(fill_image(image.get(), bytes, inodes, owner));
  return mount_image(image.get());
}

}  // namespace cofferdam::workspace
