// The queue, the capacity, and captured contexts, with real attempts.
#include <functional>

#include "contract/event.h"
#include "e2e/running.h"
#include "ledger/ledger.h"

namespace cofferdam::test {
namespace {

using contract::Json;

const std::string kBlock = "echo ready; sleep 600";
const std::string kDigest(64, 'd');

class Admission : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (!HasFatalFailure() && !IsSkipped()) capacity("");
  }
  // An invocation of this id as a file.
  std::string request(const std::string& id, const std::string& script, const Json& more = Json::object()) {
    Json json = {{"schema", "cofferdam.invocation/1"},
                 {"attempt_id", id},
                 {"phase", "implementation"},
                 {"agent", {{"name", "command"}, {"argv", {"/bin/sh", "-c", script}}}},
                 {"clone", {{"repository", world().repo()}, {"head", world().git({"rev-parse", "HEAD"})}}},
                 {"prompt", ""},
                 {"deadlines", {{"total_ms", 600000}}}};
    json.update(more);
    const std::string path = world().root() + "/" + id + ".json";
    world().write(path, json.dump());
    return path;
  }
  Running start(const std::string& id, const std::string& script, const Json& more = Json::object()) {
    return {world(), {"exec", "--config", world().config(), request(id, script, more)}};
  }
  RunOutcome exec(const std::string& id, const std::string& script, const Json& more = Json::object()) {
    return world().cofferdam({"exec", "--config", world().config(), request(id, script, more)});
  }
  void capacity(const std::string& text) const { world().write(world().config(), "[capacity]\n" + text); }
  std::string printed_by(const std::string& id) const {
    return world().state() + "/attempts/" + id + "/stdout";
  }
  std::string state_of(const std::string& id) const {
    auto list = contract::parse_json(trim(world().cofferdam({"list", "--json"}).out), 1U << 20U);
    if (!list) return "unreadable";
    for (const Json& one : *list) {
      if (one["attempt_id"] == id) return one["state"].get<std::string>();
    }
    return "absent";
  }
  void wait_for_state(const std::string& id, const std::string& state) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (state_of(id) != state) {
      if (std::chrono::steady_clock::now() > end) FAIL() << id << " is " << state_of(id) << ", not " << state;
      ::usleep(50'000);  // a poll of a condition
    }
  }
  void cancel(const std::string& id) const {
    RunOutcome cancelled = world().cofferdam({"cancel", id});
    EXPECT_EQ(cancelled.status.code, 0) << cancelled.err;
  }
  void set_context(const std::string& name, const std::string& from, const std::string& to) const {
    RunOutcome set = world().cofferdam(
        {"context", "set", name, "--from", from, "--to", to, "--sha256", kDigest, "--json"});
    EXPECT_EQ(set.status.code, 0) << set.err;
  }
  static Json context(std::uint64_t version) {
    return {{"context", {{"name", "notes"}, {"version", version}, {"sha256", kDigest}}}};
  }
  static std::vector<contract::Event> events_of(const RunOutcome& outcome) {
    std::vector<contract::Event> events;
    for (const std::string& line : split(trim(outcome.out), '\n')) {
      if (auto event = contract::decode_event(line)) events.push_back(*event);
    }
    return events;
  }
  static std::string first_types(const RunOutcome& outcome, std::size_t count) {
    std::string out;
    for (const contract::Event& event : events_of(outcome)) {
      if (count-- == 0) break;
      out += (out.empty() ? "" : " ") + event.type;
    }
    return out;
  }
};

TEST_P(Admission, ThreeAttemptsTakeTheirTurns) {
  capacity("attempts = 1\n");
  Running first = start("first", kBlock);
  Running::wait_for(printed_by("first"), "ready");
  Running second = start("second", "echo second > second.txt");
  wait_for_state("second", "queued");
  Running third = start("third", "echo third > third.txt");
  wait_for_state("third", "queued");
  EXPECT_EQ(state_of("first"), "running");
  EXPECT_NE(world().cofferdam({"show", "second"}).out.find("queued"), std::string::npos);
  cancel("first");
  EXPECT_EQ(first.finish().status.code, 5);
  const RunOutcome b = second.finish();
  const RunOutcome c = third.finish();
  EXPECT_EQ(b.status.code, 0) << b.err;
  EXPECT_EQ(c.status.code, 0) << c.err;
  EXPECT_EQ(first_types(b, 3), "queued admitted cloned");
  EXPECT_EQ(first_types(c, 4), "queued queued admitted cloned") << "its new position is an event";
  ASSERT_GT(events_of(c).size(), 3U);
  EXPECT_NE(events_of(c)[0].data.find(R"("position":2)"), std::string::npos) << events_of(c)[0].data;
  EXPECT_NE(events_of(c)[1].data.find(R"("position":1)"), std::string::npos) << events_of(c)[1].data;
  EXPECT_LE(events_of(b).back().at, events_of(c)[2].at) << "the third came in when the second had ended";
}

TEST_P(Admission, WhoWaitsCanBeCancelledAndRunsNothing) {
  capacity("attempts = 1\n");
  Running first = start("first", kBlock);
  Running::wait_for(printed_by("first"), "ready");
  Running second = start("second", kBlock);
  wait_for_state("second", "queued");
  cancel("second");
  const RunOutcome outcome = second.finish();
  EXPECT_EQ(outcome.status.code, 5) << outcome.err;
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.result->cause.control, "cancel");
  EXPECT_FALSE(outcome.result->process.started_at.has_value());
  EXPECT_EQ(first_types(outcome, 9), "queued cancel-requested finished");
  EXPECT_EQ(state_of("first"), "running") << "the other one is left alone";
  cancel("first");
  EXPECT_EQ(first.finish().status.code, 5);
}

TEST_P(Admission, WhoDoesNotWaitIsRefusedAndWhoWaitsTooLongToo) {
  capacity("attempts = 1\n");
  Running first = start("first", kBlock);
  Running::wait_for(printed_by("first"), "ready");
  RunOutcome refused = exec("second", "true", {{"when_full", "refuse"}});
  EXPECT_EQ(refused.status.code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("[capacity]"), std::string::npos) << refused.err;
  EXPECT_EQ(state_of("second"), "absent");
  RunOutcome late = exec("third", "true", {{"deadlines", {{"total_ms", 1000}}}});
  EXPECT_EQ(late.status.code, 3) << late.err;
  ASSERT_TRUE(late.result.has_value());
  EXPECT_EQ(late.result->outcome, contract::Outcome::refused);
  EXPECT_EQ(late.result->cause.control, "capacity");
  cancel("first");
  EXPECT_EQ(first.finish().status.code, 5);
  EXPECT_EQ(exec("second", "true", {{"when_full", "refuse"}}).status.code, 0) << "the control";
}

TEST_P(Admission, ItsTimeBeginsWhenItIsLetIn) {
  capacity("attempts = 1\n");
  Running first = start("first", "echo ready; sleep 4");
  Running::wait_for(printed_by("first"), "ready");
  RunOutcome second = exec("second", "sleep 3.5", {{"deadlines", {{"total_ms", 6000}}}});
  EXPECT_EQ(second.status.code, 0) << "the wait and the run together are longer than that\n" << second.err;
  EXPECT_EQ(first.finish().status.code, 0);
}

TEST_P(Admission, MemoryIsCounted) {
  // 9 GiB; an attempt has 4 GiB unless it says otherwise, and the boxes of ours 2 GiB for each attempt.
  capacity("memory_bytes = 9663676416\n");
  Running first = start("first", kBlock);
  Running::wait_for(printed_by("first"), "ready");
  EXPECT_EQ(exec("second", "true", {{"when_full", "refuse"}}).status.code, 3);
  const Json small = {{"when_full", "refuse"}, {"limits", {{"memory_bytes", 1ULL << 30U}}}};
  EXPECT_EQ(exec("small", "true", small).status.code, 0) << "the control: there is room for less";
  RunOutcome never = exec("never", "true", {{"limits", {{"memory_bytes", 1ULL << 40U}}}});
  EXPECT_EQ(never.status.code, 3);
  EXPECT_NE(never.err.find("whole capacity"), std::string::npos) << never.err;
  cancel("first");
  EXPECT_EQ(first.finish().status.code, 5);
}

TEST_P(Admission, AContextMustBeTheCurrentOne) {
  RunOutcome unknown = exec("unknown", "true", context(3));
  EXPECT_EQ(unknown.status.code, 3);
  EXPECT_NE(unknown.err.find("cofferdam context set notes --from 0 --to 3"), std::string::npos)
      << unknown.err;
  set_context("notes", "0", "3");
  EXPECT_EQ(exec("current", "true", context(3)).status.code, 0) << "the control";
  set_context("notes", "3", "4");
  RunOutcome stale = exec("stale", "true", context(3));
  EXPECT_EQ(stale.status.code, 3);
  EXPECT_EQ(stale.out, "");
  EXPECT_NE(stale.err.find("at version 4"), std::string::npos) << stale.err;
  EXPECT_EQ(state_of("stale"), "absent");
  EXPECT_EQ(world().cofferdam({"context", "set", "notes", "--from", "3", "--to", "5"}).status.code, 3);
  RunOutcome list = world().cofferdam({"context", "list", "--json"});
  EXPECT_NE(list.out.find(R"("version":4)"), std::string::npos) << list.out;
  EXPECT_EQ(world().cofferdam({"context", "show", "notes"}).status.code, 0);
  EXPECT_EQ(world().cofferdam({"context", "show", "other"}).status.code, 2);
}

TEST_P(Admission, OfTwoAttemptsOnOneContextOneIsPublished) {
  set_context("notes", "0", "3");
  Running one = start("one", "echo one > one.txt; sleep 1", context(3));
  Running two = start("two", "echo two > two.txt; sleep 1", context(3));
  const RunOutcome a = one.finish();
  const RunOutcome b = two.finish();
  ASSERT_TRUE(a.result.has_value()) << a.err;
  ASSERT_TRUE(b.result.has_value()) << b.err;
  const bool first_won = a.result->publication.state == "published";
  const contract::ResultRecord& winner = first_won ? *a.result : *b.result;
  const contract::ResultRecord& loser = first_won ? *b.result : *a.result;
  EXPECT_EQ(winner.outcome, contract::Outcome::completed);
  EXPECT_EQ(winner.publication.state, "published");
  EXPECT_EQ(loser.outcome, contract::Outcome::refused);
  EXPECT_EQ(loser.cause.control, "stale-context");
  EXPECT_EQ(loser.publication.state, "stale");
  EXPECT_FALSE(loser.change.ref.has_value());
  ASSERT_TRUE(loser.change.commit.has_value()) << "its work is kept";
  const std::string branches = world().git({"for-each-ref", "--format=%(refname)", "refs/heads/cofferdam"});
  EXPECT_EQ(trim(branches), "refs/heads/cofferdam/" + winner.attempt_id);
  RunOutcome diff = world().cofferdam({"diff", loser.attempt_id});
  EXPECT_EQ(diff.status.code, 0) << diff.err;
  EXPECT_NE(diff.out.find("+" + loser.attempt_id), std::string::npos) << diff.out;
}

// What is stored while an attempt runs is enough to close its account.
TEST_P(Admission, ARunningAttemptHasADraftThatCanBeRead) {
  Running running = start("running", kBlock);
  Running::wait_for(printed_by("running"), "ready");
  auto ledger = ledger::Ledger::open(ledger::ledger_path(world().state()));
  ASSERT_TRUE(ledger) << ledger.error().line();
  auto found = ledger->find("running");
  ASSERT_TRUE(found && found->has_value());
  EXPECT_GE((*found)->stage, contract::Stage::box_ready);
  ASSERT_TRUE((*found)->draft.has_value());
  auto draft = contract::decode_result(*(*found)->draft);
  ASSERT_TRUE(draft) << draft.error().line();
  EXPECT_EQ(draft->attempt_id, "running");
  EXPECT_TRUE(draft->clone.has_value());
  cancel("running");
  EXPECT_EQ(running.finish().status.code, 5);
}

COFFERDAM_FOR_BOTH_USERS(Admission);

}  // namespace
}  // namespace cofferdam::test
