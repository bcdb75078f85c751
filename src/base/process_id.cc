#include "base/process_id.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace cofferdam {
namespace {

constexpr std::size_t kStartField = 19;  // of those behind the name, which are counted from the state

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The name of a program may hold spaces and brackets: what counts stands behind the last bracket.
std::optional<std::uint64_t> start_of(const std::string& stat) {
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(stat).substr(name_end + 2), ' ');
  if (fields.size() <= kStartField) return std::nullopt;
  if (fields[0] == "Z" || fields[0] == "X") return std::nullopt;  // has ended
  return number(fields[kStartField]);
}

}  // namespace

Result<std::string> boot_id() {
  TRY(const std::string text, read_file("/proc/sys/kernel/random/boot_id", 256));
  return std::string(trim(text));
}

Result<ProcessId> identify(pid_t pid) {
  TRY(const std::string stat, read_file(fmt::format("/proc/{}/stat", pid), 8192));
  TRY(const std::string boot, boot_id());
  const auto start = start_of(stat);
  if (!start.has_value()) return make_error(Code::not_found, fmt::format("process {} has ended", pid));
  return ProcessId{pid, *start, boot};
}

std::optional<UniqueFd> open_process(const ProcessId& id) {
  // The descriptor first: it keeps meaning the process that is then looked at.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0)));
  if (!fd.valid()) return std::nullopt;
  auto found = identify(id.pid);
  if (!found || !(*found == id)) return std::nullopt;
  return fd;
}

std::string to_line(const ProcessId& id) {
  return fmt::format("{} {} {}\n", id.pid, id.start_ticks, id.boot_id);
}

std::optional<ProcessId> process_from_line(std::string_view line) {
  const std::vector<std::string> fields = split(trim(line), ' ');
  if (fields.size() != 3 || fields[2].empty()) return std::nullopt;
  const auto pid = number(fields[0]);
  const auto start = number(fields[1]);
  if (!pid.has_value() || *pid == 0 || *pid > INT32_MAX || !start.has_value()) return std::nullopt;
  return ProcessId{static_cast<pid_t>(*pid), *start, fields[2]};
}

}  // namespace cofferdam
