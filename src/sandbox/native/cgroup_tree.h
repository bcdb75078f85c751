// The groups above those of attempts: made before the first, removed behind the last.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/native/cgroup_place.h"

namespace cofferdam::sandbox {

// Which of place.trees has that controller.
std::optional<std::size_t> tree_of(const CgroupPlace& place, const char* controller);
// Version 2: the groups below this one have the controllers that boxes need.
Status hand_down(const std::string& folder);
// What is missing of the folders of place.trees, if they are ours to make; moves us to place.leaf.
Status make_base(const CgroupPlace& place);
// Removes them when nothing is in them, if they are ours.
void remove_base(const CgroupPlace& place);
// Names of the groups below these, which are the same group in every hierarchy.
std::vector<std::string> boxes_below(const std::vector<std::string>& folders);

}  // namespace cofferdam::sandbox
