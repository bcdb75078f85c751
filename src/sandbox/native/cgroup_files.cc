#include "sandbox/native/cgroup_files.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace cofferdam::sandbox {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::size_t kMaxText = 8U << 20U;

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

bool is_frozen(const std::string& folder, int version) {
  if (version == 2) return read_count(folder + "/cgroup.events", "frozen") == 1;
  auto state = read_file(folder + "/freezer.state", 64);
  return state && trim(*state) == "FROZEN";
}

}  // namespace

Status write_setting(const std::string& path, std::string_view text) {
  TRY(const UniqueFd file, open_file(path, O_WRONLY));
  if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return sys_error("cannot write " + path, errno);
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  auto text = read_file(path, 4096);
  if (!text) return std::nullopt;
  return number_of(*text);
}

std::uint64_t read_count(const std::string& path, std::string_view key) {
  auto text = read_file(path, kMaxText);
  if (!text) return 0;
  for (const std::string& line : split(*text, '\n')) {
    if (!starts_with(line, key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    return number_of(std::string_view(line).substr(key.size() + 1)).value_or(0);
  }
  return 0;
}

std::vector<pid_t> processes_of(const std::string& folder) {
  std::vector<pid_t> pids;
  auto text = read_file(folder + "/cgroup.procs", kMaxText);
  if (!text) return pids;
  for (const std::string& line : split(*text, '\n')) {
    // 0: a process outside of our pid namespace. Nothing of ours is.
    const auto pid = number_of(line);
    if (pid.has_value() && *pid > 1) pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

bool freeze(const std::string& folder, int version, std::chrono::milliseconds limit) {
  const auto end = SteadyClock::now() + limit;
  const Status asked = version == 2 ? write_setting(folder + "/cgroup.freeze", "1")
                                    : write_setting(folder + "/freezer.state", "FROZEN");
  if (!asked) return false;
  while (!is_frozen(folder, version)) {
    if (SteadyClock::now() > end) return false;
    ::poll(nullptr, 0, 1);  // between two looks
  }
  return true;
}

void thaw(const std::string& folder, int version) {
  const Status asked = version == 2 ? write_setting(folder + "/cgroup.freeze", "0")
                                    : write_setting(folder + "/freezer.state", "THAWED");
  (void)asked.has_value();  // a group that is gone has nothing left to go on
}

Status remove_group(const std::string& folder, std::chrono::milliseconds limit) {
  const auto end = SteadyClock::now() + limit;
  while (::rmdir(folder.c_str()) != 0) {
    if (errno == ENOENT) return {};
    if (errno != EBUSY || SteadyClock::now() > end) return sys_error("cannot remove " + folder, errno);
    ::poll(nullptr, 0, 1);  // between two tries
  }
  return {};
}

}  // namespace cofferdam::sandbox
