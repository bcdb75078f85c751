#include "sandbox/native/cgroup_place.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::size_t kMaxText = 4U << 20U;
constexpr const char* kLeaf = "/supervisor";
// What a bound needs, then what is taken where it can be had.
constexpr const char* kNeeded[] = {"memory", "pids"};
constexpr const char* kWelcome[] = {"freezer", "cpu"};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool can_write(const std::string& path) {
  return ::access(path.c_str(), W_OK) == 0;
}

std::vector<std::string> words_of(const std::string& path) {
  auto text = read_file(path, kMaxText);
  if (!text) return {};
  std::string flat = *text;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  std::vector<std::string> words = split(flat, ' ');
  std::erase(words, "");
  return words;
}

const CgroupMount* mount_of(const std::vector<CgroupMount>& mounts, const std::string& controller) {
  for (const CgroupMount& mount : mounts) {
    if (mount.version == 1 && has(mount.controllers, controller)) return &mount;
  }
  return nullptr;
}

std::string folder_for(const CgroupMount& mount, const CgroupQuery& query) {
  return fmt::format("{}/{}/{}", mount.folder, query.name, query.user);
}

bool can_use(const CgroupMount& mount, const CgroupQuery& query) {
  return can_write(query.user == 0 ? mount.folder : folder_for(mount, query));
}

// Root makes what it needs; anybody else has what `host-setup` has made.
CgroupPlace place_of_version_1(const std::vector<CgroupMount>& mounts, const CgroupQuery& query) {
  CgroupPlace place;
  place.version = 1;
  place.own_levels = query.user == 0 ? 2 : 0;
  std::vector<const CgroupMount*> taken;
  for (const char* controller : kNeeded) {
    const CgroupMount* mount = mount_of(mounts, controller);
    if (!can_use(*mount, query)) {
      place.why_not = query.user == 0
                          ? mount->folder + " cannot be written"
                          : fmt::format("no control groups of uid {} below {}", query.user, mount->folder);
      return place;
    }
    taken.push_back(mount);
  }
  for (const char* controller : kWelcome) {
    const CgroupMount* mount = mount_of(mounts, controller);
    if (mount != nullptr && can_use(*mount, query)) taken.push_back(mount);
  }
  for (const CgroupMount* mount : taken) {
    const std::string folder = folder_for(*mount, query);
    const bool known = std::any_of(place.trees.begin(), place.trees.end(),
                                   [&](const CgroupTree& tree) { return tree.folder == folder; });
    if (!known) place.trees.push_back({*mount, folder});
  }
  return place;
}

bool has_controllers(const std::string& group) {
  const std::vector<std::string> offered = words_of(group + "/cgroup.controllers");
  return has(offered, "memory") && has(offered, "pids");
}

// Only the hierarchy's own root may have processes beside groups with controllers; it alone has no
// cgroup.type.
bool is_true_root(const std::string& group) {
  return !exists(group + "/cgroup.type");
}

// The nearest group above us into which we may put others. Whoever moves a process has to be able to write
// cgroup.procs of the group that its old and its new one have in common, which is why a place beside our own
// branch is of no use (cgroup-v2.rst, "Delegation Containment").
CgroupPlace place_of_version_2(const CgroupMount& mount, const CgroupQuery& query) {
  CgroupPlace place;
  place.version = 2;
  if (query.user == 0 && can_write(mount.folder) && is_true_root(mount.folder) &&
      has_controllers(mount.folder)) {
    place.trees = {{mount, folder_for(mount, query)}};
    place.own_levels = 2;
    return place;
  }
  const std::string own = folder_of_group(query.proc_cgroup, mount);
  std::string last = own.empty() ? mount.folder : own;
  for (std::string group = own; group.size() >= mount.folder.size() && !group.empty();
       group.resize(group.rfind('/'))) {
    if (!can_write(group) || !can_write(group + "/cgroup.procs")) break;
    last = group;
    if (!has_controllers(group)) continue;
    const std::vector<std::string> inside = words_of(group + "/cgroup.procs");
    const bool alone = group == own && inside == std::vector<std::string>{std::to_string(query.self)};
    // Not once more where we have moved to already.
    if ((!inside.empty() && !alone) || (alone && group.ends_with(kLeaf))) continue;
    if (alone) place.leaf = group + kLeaf;
    place.trees = {{mount, group + "/" + query.name}};
    place.own_levels = 1;
    return place;
  }
  place.why_not = fmt::format("no group above {} is handed over with memory and pids", last);
  return place;
}

}  // namespace

std::vector<CgroupMount> parse_cgroup_mounts(const std::string& mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    // proc_pid_mountinfo(5): id parent device root folder options [optional...] - type source super-options
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> front = split(line.substr(0, dash), ' ');
    const std::vector<std::string> back = split(line.substr(dash + 3), ' ');
    if (front.size() < 6 || back.size() < 3) continue;
    if (back[0] == "cgroup2") mounts.push_back({2, front[4], front[3], {}});
    if (back[0] == "cgroup") mounts.push_back({1, front[4], front[3], split(back[2], ',')});
  }
  return mounts;
}

std::string folder_of_group(const std::string& proc_cgroup, const CgroupMount& mount) {
  for (const std::string& line : split(proc_cgroup, '\n')) {
    // hierarchy:controllers:path; the path may have colons.
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const bool ours = mount.version == 2
                          ? line.compare(0, second, "0:") == 0
                          : !controllers.front().empty() && has(mount.controllers, controllers.front());
    if (!ours) continue;
    std::string path = line.substr(second + 1);
    if (mount.root != "/") {
      const bool below = path == mount.root || starts_with(path, mount.root + "/");
      if (!below) return {};
      path.erase(0, mount.root.size());
    }
    while (!path.empty() && path.back() == '/') path.pop_back();
    return mount.folder + path;
  }
  return {};
}

CgroupPlace find_cgroup_place(const CgroupQuery& query) {
  const std::vector<CgroupMount> mounts = parse_cgroup_mounts(query.mountinfo);
  const bool version_1 = std::all_of(std::begin(kNeeded), std::end(kNeeded), [&](const char* controller) {
    return mount_of(mounts, controller) != nullptr;
  });
  if (version_1) return place_of_version_1(mounts, query);
  for (const CgroupMount& mount : mounts) {
    if (mount.version == 2) return place_of_version_2(mount, query);
  }
  CgroupPlace place;
  place.why_not = "no control groups are mounted on this host";
  return place;
}

CgroupPlace find_cgroup_place(const std::string& name) {
  auto mountinfo = read_file("/proc/self/mountinfo", kMaxText);
  auto own = read_file("/proc/self/cgroup", kMaxText);
  CgroupQuery query{name, ::geteuid(), mountinfo ? *mountinfo : "", own ? *own : "", ::getpid()};
  return find_cgroup_place(query);
}

}  // namespace cofferdam::sandbox
