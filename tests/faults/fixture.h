#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/io.h"
#include "base/process_id.h"
#include "base/text.h"
#include "contract/lifecycle.h"
#include "e2e/endings.h"
#include "e2e/fixture.h"
#include "e2e/running.h"
#include "ledger/ledger.h"

namespace cofferdam::test {

using contract::Outcome;
using contract::Stage;

// A world whose processes can be made to die at a named moment, and what must be true after any of their
// deaths.
class Faults : public EndToEndWorld {
 protected:
  void SetUp() override {
    EndToEndWorld::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    mutable_world().program = "cofferdam-faults";
    notes_ = world().root() + "/notes";
    ASSERT_TRUE(make_new_dir(notes_, 0777));
    ASSERT_EQ(::chmod(notes_.c_str(), 0777), 0);
  }

  // From now on processes of ours die there.
  void arm(const std::string& point) {
    mutable_world().extra_env.push_back("COFFERDAM_FAILPOINT=" + point);
    mutable_world().extra_env.push_back("COFFERDAM_FAILPOINT_DIR=" + notes_);
  }
  void disarm() {
    auto& env = mutable_world().extra_env;
    std::erase_if(env, [](const std::string& entry) { return starts_with(entry, "COFFERDAM_FAILPOINT="); });
  }
  bool fired() const { return exists(notes_ + "/fired"); }

  std::vector<std::string> command(const std::string& id, const std::string& script) const {
    return {"run", "--json", "--agent", "command", "--attempt-id", id, "--", "/bin/sh", "-c", script};
  }

  // What every attempt is like after its recovery.
  contract::ResultRecord expect_closed(const std::string& id) {
    contract::ResultRecord result;
    auto ledger = open_ledger();
    if (!ledger) {
      ADD_FAILURE() << ledger.error().line();
      return result;
    }
    auto record = ledger->find(id);
    EXPECT_TRUE(record && record->has_value());
    if (!record || !record->has_value()) return result;
    EXPECT_TRUE((*record)->result.has_value()) << "there is no terminal result";
    if (!(*record)->result.has_value()) return result;
    auto decoded = contract::decode_result(*(*record)->result);
    EXPECT_TRUE(decoded) << *(*record)->result;
    if (decoded) result = *decoded;
    auto chain = ledger->verify(id);
    EXPECT_TRUE(chain && chain->intact) << (chain ? chain->problem : chain.error().line());
    expect_one_ending(*ledger, id);
    expect_nothing_left(id);
    return result;
  }

  Result<ledger::Ledger> open_ledger() const {
    return ledger::Ledger::open(ledger::ledger_path(world().state()));
  }
  void expect_one_ending(ledger::Ledger& ledger, const std::string& id) {
    auto events = ledger.events(id);
    ASSERT_TRUE(events);
    std::size_t endings = 0;
    Stage stage = Stage::none;
    for (const contract::Event& event : *events) {
      if (event.type == contract::event_type::finished) ++endings;
      const auto next = contract::next_stage(stage, event.type);
      ASSERT_TRUE(next.has_value()) << event.type << " after " << contract::stage_name(stage);
      stage = *next;
    }
    EXPECT_EQ(endings, 1U);
  }

  // Processes by what the test build wrote down of every child; files by name.
  void expect_nothing_left(const std::string& id) {
    auto parts = read_file(notes_ + "/parts", 1U << 20U);
    for (const std::string& line : split(parts ? *parts : "", '\n')) {
      const std::size_t space = line.find(' ');
      if (space == std::string::npos) continue;
      const auto process = process_from_line(line.substr(space + 1));
      ASSERT_TRUE(process.has_value()) << line;
      // A box that is the last to hold the disk of a keeper that was killed unmounts it before it is gone.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (open_process(*process).has_value() && std::chrono::steady_clock::now() < end) ::usleep(20'000);
      EXPECT_FALSE(open_process(*process).has_value()) << line << " still runs";
    }
    const std::string folder = world().state() + "/attempts/" + id;
    for (const char* name : {"/lock", "/keeper", "/control"}) EXPECT_FALSE(exists(folder + name)) << name;
    if (auto names = list_dir(folder + "/store.git")) {
      for (const std::string& name : *names) EXPECT_FALSE(starts_with(name, "incoming-")) << name;
    }
    const Captured halves = world().as_user({"/usr/bin/find", world().state(), "-name", ".new-*"});
    EXPECT_EQ(halves.out, "") << "a clone that was broken off is left";
    // The git that makes the ref finishes by itself when its supervisor was killed.
    const auto locks = [&] {
      return world().as_user({"/usr/bin/find", world().repo() + "/.git", "-name", "*.lock"}).out;
    };
    EXPECT_TRUE(comes_true([&] { return locks().empty(); }))
        << "git's lock files are left in the user's repository: " << locks();
    world().git({"fsck", "--strict"});
  }

  // A second look finds nothing to do and changes nothing.
  void expect_settled_for_good(const std::string& id) {
    const RunOutcome before = world().cofferdam({"show", "--json", id});
    const RunOutcome again = world().cofferdam({"recover", "--json"});
    EXPECT_EQ(again.status.code, 0) << again.err;
    EXPECT_NE(again.out.find("\"closed\":[]"), std::string::npos) << again.out;
    EXPECT_EQ(world().cofferdam({"show", "--json", id}).out, before.out);
  }
  std::string diff(const std::string& id) { return world().cofferdam({"diff", id}).out; }

  std::string notes_;
};

// --- the supervisor, at every step
// --------------------------------------------------------------------------

}  // namespace cofferdam::test
