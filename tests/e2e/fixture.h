// What the end-to-end tests share: one world per test, for either user.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "contract/json.h"
#include "support/world.h"

namespace cofferdam::test {

// For suites that have more parameters than the user.
class EndToEndWorld : public ::testing::Test {
 protected:
  virtual User user() const = 0;
  void SetUp() override;
  void TearDown() override;

  const World& world() const { return *world_; }
  World& mutable_world() { return *world_; }

  // Starts the stand-in with this script and points the user's configuration at it.
  // It accepts `key` alone, which the configuration's source of credentials is left to find. `more_config`
  // stands behind the table of Anthropic.
  void use_standin(const std::string& script, const char* key = kTestKey,
                   const std::string& more_config = {});
  // What names an upstream, and the stand-in's authority for it, in a vendor's table.
  std::string place_of(const std::string& upstream) const;
  // Another upstream, with `more` in the table of either vendor.
  void write_config(const std::string& upstream, const std::string& more = {}) const;
  // The script of tests/standin/scripts.
  static std::string script_file(const std::string& name);
  const Standin& standin() const { return *standin_; }
  // True when the real CLI is installed; otherwise the test is over (skipped or failed).
  bool need_agent(const std::string& name);
  bool need_claude() { return need_agent("claude"); }
  // Every request that the stand-in had for a target that begins so.
  std::vector<contract::Json> asked(const std::string& target) const;

  // `cofferdam run --json --agent command -- sh -c SCRIPT` and its result; a missing one fails the test.
  RunOutcome run_script(const std::string& script, const std::vector<std::string>& more = {});
  // What the script printed in the box, from the file that keeps its output.
  std::string printed(const RunOutcome& outcome) const;
  // The same script outside of any box, as the same user: the control of a denial.
  Captured outside(const std::string& script) const;

  // Nothing of an attempt is left: processes, mounts, folders of boxes.
  void expect_clean() const;

 private:
  std::optional<World> world_;
  std::optional<Standin> standin_;
  std::string mounts_before_;
};

class EndToEnd : public EndToEndWorld, public ::testing::WithParamInterface<User> {
 protected:
  User user() const override { return GetParam(); }
};

// In the names of cases that have more parameters.
inline void PrintTo(User user, std::ostream* out) {
  *out << user_name(user);
}

inline std::string user_of(const ::testing::TestParamInfo<User>& param) {
  return user_name(param.param);
}

#define COFFERDAM_FOR_BOTH_USERS(suite) \
  INSTANTIATE_TEST_SUITE_P(Users, suite, ::testing::Values(User::rootless, User::root), user_of)

}  // namespace cofferdam::test
