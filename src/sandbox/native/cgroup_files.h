// The files of a control group, one call each.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::sandbox {

// One write(2), as the kernel takes a setting.
Status write_setting(const std::string& path, std::string_view text);
// The first number in a file; none: "max", or there is no such file.
std::optional<std::uint64_t> read_number(const std::string& path);
// The number behind a key in a file of lines "key number"; 0 when it is not there.
std::uint64_t read_count(const std::string& path, std::string_view key);
// Processes of a group, not of those below it.
std::vector<pid_t> processes_of(const std::string& folder);

// Stops the group, in version 1 by the folder in the hierarchy of the freezer. False when it has not stopped
// in time; then it goes on to be stopped.
bool freeze(const std::string& folder, int version, std::chrono::milliseconds limit);
void thaw(const std::string& folder, int version);
// Removes a group without others below it. The kernel says EBUSY until the last dead process has left it.
Status remove_group(const std::string& folder, std::chrono::milliseconds limit);

}  // namespace cofferdam::sandbox
