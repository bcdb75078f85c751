// with-files UID|- FROM=TO... -- PROGRAM ARGS...: runs a program that sees some files of its host replaced,
// in a mount namespace of its own. So a test has its own /etc/hosts without touching the machine's.
// "tmpfs=TO" is an empty file system of 4 MiB and 1000 inodes, for everybody to write to: a disk that a test
// may fill. Started as root it becomes UID (and that gid, without groups) first; "-" stays as it is.
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace {

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(125);
}

void put(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  must(file.good(), path);
}

// Without root the mount namespace needs a user namespace, in which everybody stays who he is.
void own_mounts() {
  if (::geteuid() == 0) return must(::unshare(CLONE_NEWNS) == 0, "unshare");
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  must(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
  put("/proc/self/setgroups", "deny");
  put("/proc/self/uid_map", uid + " " + uid + " 1");
  put("/proc/self/gid_map", gid + " " + gid + " 1");
}

void mount_pair(const std::string& from, const std::string& to) {
  const bool small = from == "tmpfs";
  const char* options = small ? "size=4m,nr_inodes=1000,mode=0777" : nullptr;
  must(::mount(from.c_str(), to.c_str(), small ? "tmpfs" : nullptr, small ? 0 : MS_BIND, options) == 0,
       "mount");
}

void become(const std::string& user) {
  if (user == "-" || ::geteuid() != 0) return;
  const auto id = static_cast<unsigned>(std::strtoul(user.c_str(), nullptr, 10));
  must(::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0 && ::setresuid(id, id, id) == 0,
       "become");
}

}  // namespace

int main(int argc, char** argv) {
  must(argc > 3, "usage");
  own_mounts();
  must(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  int next = 2;
  for (; next < argc && std::string_view(argv[next]) != "--"; ++next) {
    const std::string pair = argv[next];
    const std::size_t equals = pair.find('=');
    must(equals != std::string::npos, "FROM=TO");
    mount_pair(pair.substr(0, equals), pair.substr(equals + 1));
  }
  must(next + 1 < argc, "usage");
  become(argv[1]);
  ::execv(argv[next + 1], argv + next + 1);
  must(false, "exec");
}
