// What the test build links in the place of src/base/failpoint.cc.
//
//   COFFERDAM_FAILPOINT=NAME         this process is killed at that point
//   COFFERDAM_FAILPOINT=NAME@PART    that child of it is
//   COFFERDAM_FAILPOINT=NAME=TEXT    TEXT is what the test asks for at that point
//   COFFERDAM_FAILPOINT_DIR=FOLDER   "fired" is made there when it happens; "parts" gets a line per child
#include "base/failpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/io.h"
#include "base/process_id.h"

namespace cofferdam {
namespace {

std::string variable(const char* name) {
  const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): the supervisor has one thread
  return value == nullptr ? "" : value;
}

std::map<std::string, pid_t>& parts() {
  static std::map<std::string, pid_t> all;
  return all;
}

void note(const char* file, const std::string& line) {
  const std::string folder = variable("COFFERDAM_FAILPOINT_DIR");
  if (folder.empty()) return;
  if (auto fd = open_file(folder + "/" + file, O_WRONLY | O_CREAT | O_APPEND)) {
    (void)write_all(fd->get(), line).has_value();
  }
}

}  // namespace

void failpoint(const char* name) {
  const std::string wanted = variable("COFFERDAM_FAILPOINT");
  const std::size_t at = wanted.find('@');
  if (wanted.substr(0, at) != name) return;
  if (at == std::string::npos) {
    note("fired", wanted + "\n");
    ::kill(::getpid(), SIGKILL);
  }
  const auto part = parts().find(wanted.substr(at + 1));
  if (part == parts().end()) return;  // "fired" is missing, which the test finds
  note("fired", wanted + "\n");
  ::kill(part->second, SIGKILL);
  parts().erase(part);  // once
}

std::string failpoint_text(const char* name) {
  const std::string wanted = variable("COFFERDAM_FAILPOINT");
  const std::string prefix = std::string(name) + "=";
  return wanted.rfind(prefix, 0) == 0 ? wanted.substr(prefix.size()) : "";
}

void failpoint_part(const char* part, pid_t pid) {
  parts()[part] = pid;
  if (auto id = identify(pid)) note("parts", std::string(part) + " " + to_line(*id));
}

}  // namespace cofferdam
