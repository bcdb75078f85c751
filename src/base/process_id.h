// Which process is meant, for as long as the machine runs: a pid alone is used again after its process's end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam {

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot: field 22 of /proc/PID/stat, proc(5)
  std::string boot_id;            // /proc/sys/kernel/random/boot_id, random(4)
  bool operator==(const ProcessId&) const = default;
};

// Which boot of the machine this is: random(4).
Result<std::string> boot_id();
// Of a running process; Code::not_found when there is none of that number.
Result<ProcessId> identify(pid_t pid);
// A pidfd of exactly that process; none when it has ended.
std::optional<UniqueFd> open_process(const ProcessId& id);

// One line of text, and back.
std::string to_line(const ProcessId& id);
std::optional<ProcessId> process_from_line(std::string_view line);

}  // namespace cofferdam
