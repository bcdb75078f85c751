#include "attempt/make_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "attempt/box_host.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "image/agents.h"
#include "image/apt.h"
#include "image/lock_file.h"
#include "image/store.h"
#include "image/unpack.h"
#include "sandbox/native/box.h"
#include "workspace/storage.h"

namespace cofferdam::attempt {
namespace {

constexpr std::size_t kMaxVerdict = 4096;
constexpr std::size_t kMaxPackage = 1U << 30U;

Status need_python() {
  if (::access(image::kPython, X_OK) == 0) return {};
  return make_error(Code::missing_tool, std::string("there is no ") + image::kPython,
                    "install the package python3: archives are read by it, in a box");
}

// From the archive to the tree. What is hostile is read in the box alone; out of it comes a stream that
// unpack_stream() takes strictly. The stream's file has a name only until it is open.
Result<std::uint64_t> unpack(const Host& host, image::UnpackInput input, const image::NewImage& made) {
  TRY_VOID(need_python());
  const std::string name = made.folder() + "/stream";
  TRY(const UniqueFd writing, open_file(name, O_WRONLY | O_CREAT | O_EXCL));
  TRY(const UniqueFd reading, open_file(name, O_RDONLY));
  if (::unlink(name.c_str()) != 0) return sys_error("unlink " + name, errno);
  input.stream_fd = writing.get();
  const sandbox::BoxHost boxes = box_host(host, "image");
  constexpr std::uint64_t kBytes = 1U << 20U;
  constexpr std::uint64_t kInodes = 64;
  TRY(workspace::Storage storage, workspace::Storage::create({boxes.init, boxes.run_as, kBytes, kInodes}));
  contract::Profile profile = image::unpack_profile(input);
  profile.work_bytes = kBytes;
  profile.work_inodes = kInodes;
  TRY(const sandbox::BoxOutput output,
      sandbox::run_box(boxes, storage.ref(), std::move(profile), kMaxVerdict, {}));
  TRY_VOID(storage.release());
  if (!output.status.success()) {
    return make_error(Code::denied, "the archive is refused: its reader ended with " +
                                        output.status.describe() + " " + printable(trim(output.err), 300));
  }
  TRY(const std::uint64_t dropped, image::read_verdict(output.out));
  TRY_VOID(image::unpack_stream(reading.get(), made.tree(), input.bounds));
  return dropped;
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// All packages in one file, since a box is given few descriptors.
Result<UniqueFd> joined(const std::vector<std::string>& paths, const std::string& folder,
                        std::vector<std::uint64_t>* sizes) {
  const std::string name = folder + "/packages";
  TRY(const UniqueFd out, open_file(name, O_WRONLY | O_CREAT | O_EXCL));
  for (const std::string& path : paths) {
    TRY(const std::string bytes, read_file(path, kMaxPackage));
    TRY_VOID(write_all(out.get(), bytes));
    sizes->push_back(bytes.size());
  }
  TRY(UniqueFd in, open_file(name, O_RDONLY));
  if (::unlink(name.c_str()) != 0) return sys_error("unlink " + name, errno);
  return in;
}

Result<image::LockFile> read_lock(const std::string& path, std::string* text) {
  auto read = read_file(path, image::kMaxLockBytes);
  if (!read) {
    return make_error(Code::usage, "cannot read the list: " + read.error().what, "name one with --list");
  }
  *text = *std::move(read);
  return image::parse_lock(*text, path);
}

}  // namespace

Result<MadeImage> build_image(const Host& host, const std::string& lock_path) {
  std::string text;
  TRY(const image::LockFile lock, read_lock(lock_path, &text));
  if (lock.packages.empty()) {
    return make_error(Code::usage, lock_path + " has no packages", "`cofferdam image lock FILE` writes them");
  }
  TRY(image::NewImage made, image::NewImage::create(host.state_dir));
  const std::string downloads = made.folder() + "/apt";
  TRY_VOID(make_new_dir(downloads));
  TRY(const std::vector<std::string> files, image::download_packages(lock.packages, downloads));
  image::UnpackInput input;
  TRY(const UniqueFd archive, joined(files, downloads, &input.package_sizes));
  input.archive_fd = archive.get();
  input.links.reserve(lock.links.size());
  for (const image::LockedLink& link : lock.links) input.links.push_back(link.path + ":" + link.text);
  TRY(const std::uint64_t dropped, unpack(host, std::move(input), made));
  for (const image::LockedAgent& agent : lock.pinned) {
    TRY_VOID(image::copy_agent(host.agents_dir, agent, made.tree()));
  }
  TRY(std::string id, made.finish(file_name(lock_path)));
  return MadeImage{std::move(id), dropped};
}

Result<MadeImage> import_image(const Host& host, const std::string& archive_path) {
  auto archive = open_file(archive_path, O_RDONLY);
  if (!archive) {
    return make_error(Code::usage, "cannot read the archive: " + archive.error().what, "name another FILE");
  }
  struct stat info {};
  if (::fstat(archive->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return make_error(Code::usage, printable(archive_path, 300) + " is no file",
                      "write the archive into one: docker save --output FILE IMAGE");
  }
  TRY(image::NewImage made, image::NewImage::create(host.state_dir));
  image::UnpackInput input;
  input.archive_fd = archive->get();
  TRY(const std::uint64_t dropped, unpack(host, std::move(input), made));
  TRY(std::string id, made.finish("import of " + file_name(archive_path)));
  return MadeImage{std::move(id), dropped};
}

Status lock_image(const Host& host, const std::string& lock_path) {
  std::string text;
  TRY(image::LockFile lock, read_lock(lock_path, &text));
  TRY(const TempDir scratch, TempDir::create(host.state_dir, ".lock-"));
  const std::string apt = scratch.path() + "/apt";
  TRY_VOID(make_new_dir(apt));
  TRY(lock.packages, image::resolve_packages(lock, apt));
  const std::string agents = scratch.path() + "/agents";
  TRY_VOID(make_new_dir(agents));
  TRY(lock.pinned, image::resolve_agents(lock.agents, host.agents_dir, agents));
  return write_file_atomic(lock_path, image::with_pins(text, lock), 0644);
}

}  // namespace cofferdam::attempt
