// What the kernel tests share: the programs staged where either user can run them, and the driver.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "support/world.h"

namespace cofferdam::test {

using Args = std::vector<std::string>;

// Every test runs as root, whose boxes are another user's, and rootless.
class Kernel : public ::testing::TestWithParam<User> {
 protected:
  void SetUp() override;
  // False when the test is over: skipped or failed.
  bool ready() const { return ready_; }

  // The driver's standard output; a driver that fails is a failure of the test.
  std::string driver(const std::string& scenario, const Args& args) const;
  std::string in_box(const Args& probe) const { return driver("run", probe); }
  // box-probe without a box, as the user of this test or as root.
  std::string outside(const Args& probe) const { return run_probe(probe, ids_); }
  std::string outside_as_root(const Args& probe) const { return run_probe(probe, std::nullopt); }
  // The same two, started by way of a program such as setpriv(1), which changes what they are.
  std::string driver_through(const Args& way, const std::string& scenario, const Args& args) const;
  std::string probe_through(const Args& way, const Args& probe) const;
  SpawnOptions driver_options(const std::string& scenario, const Args& args) const;

  const std::string& root() const { return folder_->path(); }
  std::string agent_dir() const { return root() + "/agents-of-the-host"; }
  const std::optional<UserIds>& ids() const { return ids_; }

 private:
  std::string run_probe(const Args& probe, const std::optional<UserIds>& as) const;
  std::optional<TempDir> folder_;
  std::optional<UserIds> ids_;
  bool ready_ = false;
};

inline std::string user_of(const ::testing::TestParamInfo<User>& param) {
  return user_name(param.param);
}

#define COFFERDAM_FOR_BOTH_USERS(suite) \
  INSTANTIATE_TEST_SUITE_P(Users, suite, ::testing::Values(User::rootless, User::root), user_of)

}  // namespace cofferdam::test
