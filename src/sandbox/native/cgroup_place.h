// Where on this host control groups of ours can be: read from what the kernel says, and looked at. Nothing is
// made here. cgroups(7); Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel.
//
// Thread rules: values; the functions only read.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cofferdam::sandbox {

// One hierarchy of those that are mounted.
struct CgroupMount {
  int version = 0;
  std::string folder;                    // where it is mounted
  std::string root;                      // which of its groups that is: "/" unless it is a part only
  std::vector<std::string> controllers;  // of version 1
};

// Of the text of /proc/self/mountinfo, in its order.
std::vector<CgroupMount> parse_cgroup_mounts(const std::string& mountinfo);
// The folder of the group that the text of a /proc/PID/cgroup names in that hierarchy; empty: none that is
// mounted there.
std::string folder_of_group(const std::string& proc_cgroup, const CgroupMount& mount);

// A folder below which attempts have their groups, in one hierarchy.
struct CgroupTree {
  CgroupMount mount;
  std::string folder;
};

struct CgroupPlace {
  int version = 0;
  // The first one is memory's. In version 2 there is one; in version 1 also those of pids, freezer and cpu,
  // without the last two where they cannot be had.
  std::vector<CgroupTree> trees;
  // How many folders, up from a tree's and with it, are made when the first attempt needs them and removed
  // with the last. 0: `host-setup` has made them.
  unsigned own_levels = 0;
  // Version 2 has no processes in a group that has groups with controllers: the group to which the supervisor
  // moves first. Empty: it need not.
  std::string leaf;
  std::string why_not;  // empty: the place can be used
  bool usable() const { return why_not.empty(); }
};

struct CgroupQuery {
  std::string name;         // of the subtree
  uid_t user = 0;           // 0: may make one of its own
  std::string mountinfo;    // text of /proc/self/mountinfo
  std::string proc_cgroup;  // text of /proc/self/cgroup
  pid_t self = 0;
};
CgroupPlace find_cgroup_place(const CgroupQuery& query);
// The same for this process.
CgroupPlace find_cgroup_place(const std::string& name);

}  // namespace cofferdam::sandbox
