// What the tests of hostile endings share.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "contract/lifecycle.h"
#include "e2e/fixture.h"
#include "e2e/running.h"
#include "ledger/ledger.h"

namespace cofferdam::test {

// True once the condition holds, within a generous end.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    ::usleep(20'000);  // a poll of a condition, not a wait for time to pass
  }
  return condition();
}

class Ending : public EndToEnd {
 protected:
  std::vector<contract::Event> events_of(const std::string& id) const {
    auto ledger = ledger::Ledger::open(ledger::ledger_path(world().state()));
    if (!ledger) return {};
    auto events = ledger->events(id);
    return events ? *events : std::vector<contract::Event>{};
  }
  bool has_event(const std::string& id, const std::string& type) const {
    for (const contract::Event& event : events_of(id)) {
      if (event.type == type) return true;
    }
    return false;
  }
  std::string printed_by(const std::string& id) const {
    return world().state() + "/attempts/" + id + "/stdout";
  }
  void configure(const std::string& toml) const { world().write(world().config(), toml); }

  // Ended in its bound, by the kernel's word, with an account that the table of stages allows to the last
  // event.
  void expect_settled(const RunOutcome& outcome) const {
    ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
    EXPECT_NE(outcome.result->outcome, contract::Outcome::lost);
    EXPECT_TRUE(outcome.result->settlement.box_gone_at.has_value()) << outcome.err;
    contract::Stage stage = contract::Stage::none;
    for (const contract::Event& event : events_of(outcome.result->attempt_id)) {
      const auto next = contract::next_stage(stage, event.type);
      ASSERT_TRUE(next.has_value()) << event.type << " after " << contract::stage_name(stage);
      stage = *next;
    }
    EXPECT_EQ(stage, contract::Stage::finished);
  }

  // A program in the place of Claude's, for what the real one cannot be made to do. Its vendor is the
  // stand-in.
  void use_fake_agent(const std::string& script, const std::string& more_config = {}) {
    const std::string folder = world().root() + "/agents";
    world().write(folder + "/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
                  "#!/bin/bash\n" + script, 0755);
    use_standin(R"({"turns":[]})", kTestKey, "[agents]\ndir = \"" + folder + "\"\n" + more_config);
  }
  std::vector<std::string> ask(const std::string& id, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"ask",     "--json",          "--config",     world().config(),
                                     "--model", "claude-sonnet-5", "--attempt-id", id};
    args.insert(args.end(), more.begin(), more.end());
    args.emplace_back("Why?");
    return args;
  }
  RunOutcome asked_once(const std::string& id, const std::vector<std::string>& more = {}) const {
    RunOutcome outcome = world().cofferdam(ask(id, more));
    EXPECT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
    if (!outcome.result.has_value()) outcome.result.emplace();
    return outcome;
  }
};

}  // namespace cofferdam::test
