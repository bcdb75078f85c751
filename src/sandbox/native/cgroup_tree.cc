#include "sandbox/native/cgroup_tree.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "sandbox/native/cgroup.h"
#include "sandbox/native/cgroup_files.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::size_t kMaxText = 4U << 20U;
constexpr const char* kControllers[] = {"memory", "pids", "freezer", "cpu"};
// Where root puts the sessions whose programs may move processes below them (cgroup_place.cc).
constexpr const char* kSessions = "/sessions";
constexpr std::chrono::milliseconds kBusyBound{500};

Status make_group(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return sys_error("cannot make " + folder, errno);
}

std::string parent_of(const std::string& folder) {
  return folder.substr(0, folder.rfind('/'));
}

Status give(const std::string& path, const UserIds& owner) {
  if (::chown(path.c_str(), owner.uid, owner.gid) == 0) return {};
  return sys_error("cannot give away " + path, errno);
}

std::vector<CgroupMount> mounts_for_users() {
  auto text = read_file("/proc/self/mountinfo", kMaxText);
  const std::vector<CgroupMount> all = parse_cgroup_mounts(text ? *text : "");
  std::vector<CgroupMount> wanted;
  std::set<std::string> found;
  for (const char* controller : kControllers) {
    for (const CgroupMount& mount : all) {
      const std::vector<std::string>& own = mount.controllers;
      if (mount.version != 1 || std::find(own.begin(), own.end(), controller) == own.end()) continue;
      if (found.insert(mount.folder).second) wanted.push_back(mount);
    }
  }
  // Version 1 only with both that a bound needs, as find_cgroup_place() has it.
  const auto has = [&](const char* name) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const CgroupMount& mount) {
      return std::find(mount.controllers.begin(), mount.controllers.end(), name) != mount.controllers.end();
    });
  };
  if (has("memory") && has("pids")) return wanted;
  wanted.clear();
  for (const CgroupMount& mount : all) {
    if (mount.version == 2 && wanted.empty()) wanted.push_back(mount);
  }
  return wanted;
}

// cgroup-v2.rst, "Model of Delegation": the folder and these files of it, and nothing that bounds it.
Status delegate(const std::string& folder, const UserIds& owner) {
  TRY_VOID(hand_down(parent_of(parent_of(folder))));
  TRY_VOID(hand_down(parent_of(folder)));
  TRY_VOID(make_group(folder + kSessions));
  TRY_VOID(hand_down(folder));
  for (const char* file : {"/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"}) {
    TRY_VOID(give(folder + file, owner));
  }
  TRY_VOID(give(folder + kSessions, owner));
  return give(std::string(folder) + kSessions + "/cgroup.procs", owner);
}

// From the uppermost down.
std::vector<std::string> own_folders(const CgroupTree& tree, unsigned levels) {
  std::vector<std::string> folders;
  std::string folder = tree.folder;
  for (unsigned level = 0; level < levels; ++level) {
    folders.insert(folders.begin(), folder);
    folder = parent_of(folder);
  }
  return folders;
}

}  // namespace

std::optional<std::size_t> tree_of(const CgroupPlace& place, const char* controller) {
  if (place.version == 2) return 0;
  for (std::size_t i = 0; i < place.trees.size(); ++i) {
    const std::vector<std::string>& own = place.trees[i].mount.controllers;
    if (std::find(own.begin(), own.end(), controller) != own.end()) return i;
  }
  return std::nullopt;
}

Status hand_down(const std::string& folder) {
  TRY_VOID(write_setting(folder + "/cgroup.subtree_control", "+memory +pids"));
  // Whether it can be had shows in the control `cpu`.
  (void)write_setting(folder + "/cgroup.subtree_control", "+cpu").has_value();
  return {};
}

Status make_base(const CgroupPlace& place) {
  if (place.own_levels == 0) return {};
  if (!place.leaf.empty()) {
    TRY_VOID(make_group(place.leaf));
    TRY_VOID(write_setting(place.leaf + "/cgroup.procs", "0"));
  }
  for (const CgroupTree& tree : place.trees) {
    for (const std::string& folder : own_folders(tree, place.own_levels)) {
      if (place.version == 2) TRY_VOID(hand_down(parent_of(folder)));
      // One above it may just have been taken away by whoever needed it last: the caller tries again.
      if (Status made = make_group(folder); !made && made.error().code != Code::not_found) return made;
    }
    if (place.version == 2) TRY_VOID(hand_down(tree.folder));
  }
  return {};
}

void remove_base(const CgroupPlace& place) {
  for (const CgroupTree& tree : place.trees) {
    const std::vector<std::string> folders = own_folders(tree, place.own_levels);
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) ::rmdir(folder->c_str());
  }
}

std::vector<std::string> boxes_below(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    auto found = list_dir(folder);
    for (const std::string& name : found ? *found : std::vector<std::string>{}) {
      if (is_directory(fmt::format("{}/{}", folder, name))) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

Status make_user_cgroups(const std::string& name, const UserIds& owner) {
  const std::vector<CgroupMount> mounts = mounts_for_users();
  if (mounts.empty()) {
    return make_error(Code::unsupported_host,
                      "no control groups with memory and pids are mounted on this host",
                      "mount them, or boot with systemd");
  }
  for (const CgroupMount& mount : mounts) {
    const std::string folder = fmt::format("{}/{}/{}", mount.folder, name, owner.uid);
    TRY_VOID(make_group(parent_of(folder)));
    TRY_VOID(make_group(folder));
    if (mount.version == 2) TRY_VOID(delegate(folder, owner));
    TRY_VOID(give(folder, owner));
  }
  return {};
}

Status remove_user_cgroups(const std::string& name, uid_t user) {
  const std::vector<CgroupMount> mounts = mounts_for_users();
  CgroupPlace place;
  for (const CgroupMount& mount : mounts) {
    place.version = mount.version;
    // In version 2 the user's own processes are beside the attempts, in groups below the user's.
    const std::string below = mount.version == 2 ? "/" + name : "";
    place.trees.push_back({mount, fmt::format("{}/{}/{}{}", mount.folder, name, user, below)});
  }
  if (place.trees.empty()) return {};
  TRY_VOID(sweep_cgroups(place));
  for (const CgroupTree& tree : place.trees) {
    const std::string folder = fmt::format("{}/{}/{}", tree.mount.folder, name, user);
    if (place.version == 2) {
      for (const std::string& own : {tree.folder, folder + kSessions}) (void)::rmdir(own.c_str());
    }
    if (!remove_group(folder, kBusyBound)) {
      return make_error(Code::conflict, folder + " is in use",
                        "wait for the attempts of this user, or cancel them");
    }
    (void)::rmdir(parent_of(folder).c_str());
  }
  return {};
}

}  // namespace cofferdam::sandbox
