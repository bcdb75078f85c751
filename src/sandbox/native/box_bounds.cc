#include "sandbox/native/box_bounds.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>

#include "base/file.h"
#include "base/text.h"
#include "sandbox/native/cgroup_files.h"
#include "sandbox/native/cgroup_tree.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::size_t kMaxText = 1U << 20U;

// The folder of the group in which init really is, in the hierarchy of that controller; empty when it is not
// the box's own.
std::string own_folder(const BoundsQuery& query, const char* controller) {
  const auto tree = tree_of(query.group->place(), controller);
  if (!tree.has_value()) return {};
  auto text = read_file(fmt::format("/proc/{}/cgroup", query.init_pid), kMaxText);
  if (!text) return {};
  std::string folder = folder_of_group(*text, query.group->place().trees[*tree].mount);
  return folder == query.group->folder(*tree) ? folder : std::string();
}

bool has_no_swap() {
  auto info = read_file("/proc/meminfo", kMaxText);
  if (!info) return false;
  const std::size_t at = info->find("\nSwapTotal:");
  if (at == std::string::npos) return false;
  const std::string line = info->substr(at + 1, info->find('\n', at + 1) - at - 1);
  return line.find_first_of("123456789") == std::string::npos;
}

struct SwapBound {
  bool bounded = false;
  std::string detail;
};

SwapBound swap_bound(const std::string& folder, int version, std::uint64_t bytes) {
  const std::string file = folder + (version == 2 ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes");
  const auto value = read_number(file);
  if (!value.has_value())
    return {has_no_swap(), has_no_swap() ? "no swap on this host" : "swap is not counted"};
  const bool none = version == 2 ? *value == 0 : *value <= bytes;
  return {none, none ? "swap 0" : "swap can be used"};
}

ProbeAnswer probe_memory(const BoundsQuery& query) {
  if (query.group == nullptr) return {"memory", false, "no control group: " + query.why_no_group};
  const std::string folder = own_folder(query, "memory");
  if (folder.empty()) return {"memory", false, "init is not in the group of its box"};
  const int version = query.group->place().version;
  const auto bytes = read_number(folder + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"));
  // The kernel counts whole pages.
  const std::uint64_t wanted = query.group->bounds().memory_bytes;
  const std::uint64_t slack = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (!bytes.has_value() || *bytes > wanted || *bytes + slack <= wanted) {
    return {"memory", false, fmt::format("the group's bound is not {}", wanted)};
  }
  const SwapBound swap = swap_bound(folder, version, *bytes);
  return {"memory", swap.bounded,
          fmt::format("cgroup v{}: at most {} bytes, {}", version, *bytes, swap.detail)};
}

// proc_pid_limits(5): "Max processes", soft limit, hard limit.
ProbeAnswer probe_process_limit(const BoundsQuery& query) {
  auto text = read_file(fmt::format("/proc/{}/limits", query.init_pid), kMaxText);
  const std::string name = "\nMax processes";
  const std::size_t at = text ? text->find(name) : std::string::npos;
  if (at == std::string::npos) return {"pids", false, "cannot read the limits of init"};
  std::string line = text->substr(at + name.size(), text->find('\n', at + 1) - at - name.size());
  std::vector<std::string> words = split(line, ' ');
  std::erase(words, "");
  const auto limit_of = [](const std::string& word) {
    const bool number =
        !word.empty() && word.size() < 20 && word.find_first_not_of("0123456789") == word.npos;
    return number ? std::stoull(word) : UINT64_MAX;  // "unlimited"
  };
  // Lower where the caller's own hard limit is, which on a small host comes from its memory.
  const bool bound = words.size() >= 2 && limit_of(words[0]) <= query.process_limit &&
                     limit_of(words[1]) <= query.process_limit;
  return {"pids", bound,
          fmt::format("RLIMIT_NPROC of the box's user namespace: {}", words.empty() ? "none" : words[0])};
}

ProbeAnswer probe_pids(const BoundsQuery& query) {
  if (query.group == nullptr) return probe_process_limit(query);
  const std::string folder = own_folder(query, "pids");
  const auto most = folder.empty() ? std::nullopt : read_number(folder + "/pids.max");
  if (!most.has_value() || *most != query.group->bounds().pids) {
    return {"pids", false, "init is not in a group with the bound of its box"};
  }
  return {"pids", true,
          fmt::format("cgroup v{}: at most {}, init and its launcher included", query.group->place().version,
                      *most)};
}

ProbeAnswer probe_cpu(const BoundsQuery& query) {
  if (query.group == nullptr) return {"cpu", false, "no control group: " + query.why_no_group};
  const std::string folder = own_folder(query, "cpu");
  const int version = query.group->place().version;
  const auto share =
      folder.empty() ? std::nullopt : read_number(folder + (version == 2 ? "/cpu.weight" : "/cpu.shares"));
  if (!share.has_value() || *share == 0) return {"cpu", false, "no group of the cpu controller"};
  return {"cpu", true, fmt::format("cgroup v{}: one share of {}, whatever runs in it", version, *share)};
}

}  // namespace

std::vector<ProbeAnswer> probe_bounds(const BoundsQuery& query) {
  return {probe_memory(query), probe_pids(query), probe_cpu(query)};
}

}  // namespace cofferdam::sandbox
