// Boxes for the driver: storage and profiles as the product makes them, small.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/profile.h"
#include "sandbox/native/box.h"
#include "workspace/storage.h"

namespace cofferdam::test {

struct LabOptions {
  sandbox::BoxHost host;
  std::string agent_dir;
};

inline constexpr std::uint64_t kWorkBytes = 8U << 20U;
inline constexpr std::uint64_t kWorkInodes = 1000;
inline constexpr std::chrono::milliseconds kDeadline = std::chrono::minutes(2);

Result<workspace::Storage> make_storage(const LabOptions& options);
// A box as an agent gets it in an implementation, running ARGV.
contract::Profile agent_profile(const LabOptions& options, std::vector<std::string> argv);

// One such box to its end.
Result<sandbox::BoxOutput> run_agent(const LabOptions& options, const contract::StorageRef& storage,
                                     std::vector<std::string> argv);
// The same with a filter that allows everything in place of ours: what is denied then, the layers below it
// deny.
Result<sandbox::BoxOutput> run_without_filter(const LabOptions& options, const contract::StorageRef& storage,
                                              std::vector<std::string> argv);

}  // namespace cofferdam::test
