// Questions: what this process is and sees. Nothing is changed.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

std::string link_text(const std::string& path) {
  char text[256];
  const ssize_t n = ::readlink(path.c_str(), text, sizeof text);
  return {text, n > 0 ? static_cast<std::size_t>(n) : 0};
}

Outcome nothing(const Args&) {
  return outcome(0);
}

// KIND TEXT: the namespace of the host, by the text of its link there.
Outcome namespace_is(const Args& args) {
  const std::string own = link_text("/proc/self/ns/" + argument(args, 0));
  if (own.empty()) return failed("no such namespace");
  return allowed_if(own == argument(args, 1), "another namespace");
}

Outcome capabilities(const Args&) {
  const std::string status = slurp("/proc/self/status", 16384);
  for (const char* set : {"CapInh:\t", "CapPrm:\t", "CapEff:\t", "CapBnd:\t", "CapAmb:\t"}) {
    const std::size_t at = status.find(set);
    if (at == std::string::npos) return failed("no capability set");
    const std::string value = status.substr(at + std::strlen(set), 16);
    if (value.find_first_not_of('0') != std::string::npos) return {Outcome::Kind::allowed, set + value};
  }
  return {Outcome::Kind::denied, "all five sets are empty"};
}

Outcome may_gain(const Args&) {
  const int set = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
  if (set < 0) return failed("PR_GET_NO_NEW_PRIVS");
  return allowed_if(set == 0, "no_new_privs is set");
}

Outcome mount_lacks(const std::string& path, unsigned long flag, const char* otherwise) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return failed("statvfs");
  return allowed_if((info.f_flag & flag) == 0, otherwise);
}

Outcome set_id_counts(const Args& args) {
  return mount_lacks(argument(args, 0), ST_NOSUID, "nosuid");
}

Outcome become_root(const Args&) {
  return outcome(::setresuid(0, 0, 0));
}

// TEXT somewhere in the mount table.
Outcome mounts_show(const Args& args) {
  const std::string table = slurp("/proc/self/mountinfo", 1U << 20U);
  if (table.empty()) return failed("no mount table");
  return allowed_if(table.find(argument(args, 0)) != std::string::npos, "not in it");
}

// PID NAME: a process of the host, seen by number and recognised by name.
Outcome see_process(const Args& args) {
  const std::string name = slurp("/proc/" + argument(args, 0) + "/comm", 64);
  if (name.empty()) return {Outcome::Kind::denied, "no such process"};
  return allowed_if(name == argument(args, 1) + "\n", "another process of that number");
}

// NUMBER: an inherited descriptor of a folder, in which a file is then opened.
Outcome walk_descriptor(const Args& args) {
  return outcome(
      ::openat(static_cast<int>(number(args, 0)), argument(args, 1).c_str(), O_RDONLY | O_CLOEXEC));
}

Outcome enter_descriptor(const Args& args) {
  return outcome(::chdir(("/proc/self/fd/" + argument(args, 0)).c_str()));
}

}  // namespace

std::vector<Act> state_acts() {
  return {{"nothing", nothing},
          {"namespace-is", namespace_is},
          {"capabilities", capabilities},
          {"may-gain", may_gain},
          {"set-id-counts", set_id_counts},
          {"become-root", become_root},
          {"mounts-show", mounts_show},
          {"see-process", see_process},
          {"walk-descriptor", walk_descriptor},
          {"enter-descriptor", enter_descriptor}};
}

}  // namespace cofferdam::probe
