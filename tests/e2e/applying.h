// An attempt whose work is applied to the repository of the test.
#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {

class Apply : public EndToEnd {
 protected:
  RunOutcome apply(const std::vector<std::string>& more = {}, const std::string& id = "work") {
    std::vector<std::string> args = {"apply", id};
    args.insert(args.end(), more.begin(), more.end());
    return world().cofferdam(args);
  }

  // An attempt "work" that does this in its box.
  void attempt(const std::string& script, const std::string& id = "work") {
    RunOutcome outcome = run_script(script, {"--attempt-id", id, "--repo", world().repo()});
    ASSERT_TRUE(outcome.result->change.commit.has_value()) << outcome.err << outcome.out;
    commit = *outcome.result->change.commit;
  }

  void sh(const std::string& script) const {
    const Captured done = world().as_user({"/bin/sh", "-euc", "cd \"$1\"\n" + script, "sh", world().repo()});
    ASSERT_TRUE(done.status.success()) << script << "\n" << done.out << done.err;
  }
  std::string said(const std::string& script) const {
    const Captured done = world().as_user({"/bin/sh", "-euc", "cd \"$1\"\n" + script, "sh", world().repo()});
    EXPECT_TRUE(done.status.success()) << script << "\n" << done.err;
    return std::string(trim(done.out));
  }
  std::string state_of_repository() const { return world().fingerprint(world().repo()); }
  std::string status() const { return said("git status --porcelain"); }

  std::string commit;  // of the last attempt
};

}  // namespace cofferdam::test
