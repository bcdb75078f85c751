// Files, links, nodes and programs.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "acts.h"

namespace box_probe {
namespace {

int create(const Args& args) {
  const std::string path = argument(args, 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return outcome(::unlink(path.c_str()));
}

int open_to_write(const Args& args) {
  return outcome(::open(argument(args, 0).c_str(), O_WRONLY | O_CLOEXEC));
}

int open_to_read(const Args& args) {
  return outcome(::open(argument(args, 0).c_str(), O_RDONLY | O_CLOEXEC));
}

int read_link(const Args& args) {
  char text[256];
  return outcome(::readlink(argument(args, 0).c_str(), text, sizeof text));
}

int hard_link(const Args& args) {
  const std::string to = argument(args, 1);
  if (::link(argument(args, 0).c_str(), to.c_str()) != 0) return errno;
  return outcome(::unlink(to.c_str()));
}

int move(const Args& args) {
  return outcome(::rename(argument(args, 0).c_str(), argument(args, 1).c_str()));
}

int remove_folder(const Args& args) {
  return outcome(::rmdir(argument(args, 0).c_str()));
}

int change_mode(const Args& args) {
  return outcome(::chmod(argument(args, 0).c_str(), static_cast<mode_t>(number(args, 1))));
}

// PATH TYPE MAJOR MINOR; the node is removed again.
int make_node(const Args& args) {
  const std::string path = argument(args, 0);
  const mode_t mode = static_cast<mode_t>(number(args, 1)) | 0600U;
  const dev_t device =
      ::makedev(static_cast<unsigned>(number(args, 2)), static_cast<unsigned>(number(args, 3)));
  if (::mknod(path.c_str(), mode, device) != 0) return errno;
  return outcome(::unlink(path.c_str()));
}

// PATH KIND: something that stays. "link" is a symbolic link to a file of the root.
int leave(const Args& args) {
  const std::string path = argument(args, 0);
  const std::string kind = argument(args, 1);
  if (kind == "folder") return outcome(::mkdir(path.c_str(), 0755));
  if (kind == "fifo") return outcome(::mkfifo(path.c_str(), 0600));
  if (kind == "link") return outcome(::symlink("/etc/passwd", path.c_str()));
  return outcome(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

// Until nothing more goes into the folder: no inode, then no byte.
int fill(const Args& args) {
  const std::string folder = argument(args, 0);
  const std::string block(65536, 'x');
  const int fd = ::open((folder + "/big").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  while (fd >= 0 && ::write(fd, block.data(), block.size()) > 0) {
  }
  int error = errno;
  for (int i = 0; error == ENOSPC; ++i) {
    const int file = ::open((folder + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) break;
    ::close(file);
  }
  return errno == ENOSPC && error == ENOSPC ? 0 : errno;
}

int print_file(const Args& args) {
  std::ifstream file(argument(args, 0));
  if (!file) return errno;
  for (std::string line; std::getline(file, line);) std::printf("%s\n", line.c_str());
  return 0;
}

int list_folder(const Args& args) {
  DIR* dir = ::opendir(argument(args, 0).c_str());
  if (dir == nullptr) return errno;
  while (const dirent* entry = ::readdir(dir)) std::printf("name %s\n", entry->d_name);
  ::closedir(dir);
  return 0;
}

int print_environment(const Args&) {
  for (char** entry = environ; *entry != nullptr; ++entry) std::printf("%s\n", *entry);
  return 0;
}

// Who we are once executed: set-id bits of the program would show here.
int print_ids(const Args&) {
  struct statvfs info {};
  const bool nosuid = ::statvfs("/proc/self/exe", &info) == 0 && (info.f_flag & ST_NOSUID) != 0;
  std::printf("uid %u euid %u gid %u egid %u nosuid %d\n", ::getuid(), ::geteuid(), ::getgid(), ::getegid(),
              nosuid ? 1 : 0);
  return 0;
}

int copy_self(int to) {
  const int from = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (from < 0) return errno;
  char buffer[65536];
  ssize_t n = 0;
  while ((n = ::read(from, buffer, sizeof buffer)) > 0) {
    if (::write(to, buffer, static_cast<std::size_t>(n)) != n) return errno;
  }
  return outcome(n);
}

// A copy of ourselves with both set-id bits, executed.
int run_set_id_copy(const Args& args) {
  const std::string path = argument(args, 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  if (fd < 0) return errno;
  if (const int error = copy_self(fd); error != 0) return error;
  ::close(fd);
  if (::chmod(path.c_str(), 06755) != 0) return errno;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) std::printf("mode %o\n", info.st_mode & 07777U);
  ::execl(path.c_str(), "box-probe", "ids", nullptr);
  return errno;
}

int run_from_memory(const Args&) {
  const int fd = ::memfd_create("probe", 0);
  if (fd < 0) return errno;
  if (const int error = copy_self(fd); error != 0) return error;
  char name[] = "box-probe";
  char act[] = "nothing";
  char* argv[] = {name, act, nullptr};
  ::fexecve(fd, argv, environ);
  return errno;
}

// What a bind mount shows in the mount table: the control of "no host path".
int bind_and_print(const Args& args) {
  if (::mount(argument(args, 0).c_str(), argument(args, 1).c_str(), nullptr, MS_BIND, nullptr) != 0)
    return errno;
  return print_file({"/proc/self/mountinfo"});
}

}  // namespace

std::vector<Act> file_acts() {
  return {{"create", create},
          {"open-write", open_to_write},
          {"open-read", open_to_read},
          {"readlink", read_link},
          {"link", hard_link},
          {"rename", move},
          {"rmdir", remove_folder},
          {"chmod", change_mode},
          {"mknod", make_node},
          {"leave", leave},
          {"fill", fill},
          {"cat", print_file},
          {"list", list_folder},
          {"environment", print_environment},
          {"ids", print_ids},
          {"set-id-copy", run_set_id_copy},
          {"memfd-exec", run_from_memory},
          {"bind-and-print", bind_and_print}};
}

}  // namespace box_probe
