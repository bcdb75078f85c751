// `cofferdam exec`: JSON in, events and one result out, for orchestrators.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/io.h"
#include "base/text.h"
#include "contract/event.h"
#include "contract/json.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

class Exec : public EndToEnd {
 protected:
  std::string invocation(const std::string& id, const std::string& script) const {
    contract::Json json = {
        {"schema", "cofferdam.invocation/1"},
        {"attempt_id", id},
        {"phase", "implementation"},
        {"agent", {{"name", "command"}, {"argv", {"/bin/sh", "-c", script}}}},
        {"clone", {{"repository", world().repo()}, {"head", world().git({"rev-parse", "HEAD"})}}},
        {"prompt", ""},
        {"deadlines", {{"total_ms", 600000}}}};
    return json.dump(2) + "\n";
  }

  // `exec -` with its whole input, and a standard output that nobody reads.
  struct Unread {
    Child child;
    UniqueFd out;
  };
  Unread start_unread(const std::string& input) const {
    auto in = make_pipe();
    auto out = make_pipe();
    if (!in || !out) std::abort();
    SpawnOptions options = world().cofferdam_options({"exec", "-"});
    options.fds = {{in->read.get(), 0}, {out->write.get(), 1}};
    auto child = spawn(options);
    if (!child) std::abort();
    in->read.reset();
    EXPECT_TRUE(write_all(in->write.get(), input));
    return {*std::move(child), std::move(out->read)};
  }
};

TEST_P(Exec, EventsThenOneResult) {
  RunOutcome outcome = world().cofferdam({"exec", "-"}, invocation("events", "echo hi > hi.txt"));
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  std::vector<std::string> lines = split(trim(outcome.out), '\n');
  ASSERT_GT(lines.size(), 5U);
  std::vector<std::string> types;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    auto event = contract::decode_event(lines[i]);
    ASSERT_TRUE(event) << lines[i] << event.error().line();
    EXPECT_EQ(event->seq, i + 1) << "events are numbered without a gap";
    types.push_back(event->type);
  }
  EXPECT_EQ(types.front(), "admitted");
  EXPECT_EQ(types.back(), "finished");
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.result->change.ref, "refs/heads/cofferdam/events");
}

// Far more than the pipe takes: the attempt has its result all the same, and the reader gets every line
// later.
TEST_P(Exec, AReaderThatStallsDoesNotStallTheSettlement) {
  constexpr int kLines = 900;  // as many as are shown of a command; a pipe takes a quarter of them
  const std::string script = "i=0; while [ $i -lt " + std::to_string(kLines) +
                             " ]; do i=$((i+1)); echo line $i of the many that nobody reads; done";
  Unread exec = start_unread(invocation("stalled", script));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  std::optional<contract::ResultRecord> shown;
  while (!shown && std::chrono::steady_clock::now() < end) {
    shown = world().cofferdam({"show", "--json", "stalled"}).result;
    if (!shown) ::usleep(50'000);  // a poll of a condition
  }
  ASSERT_TRUE(shown) << "it was settled without its reader";
  EXPECT_EQ(shown->outcome, contract::Outcome::completed);
  auto ended = exec.child.wait(std::chrono::milliseconds(0));
  EXPECT_FALSE(ended) << "the control: it waits for its reader";
  auto printed = read_to_end(exec.out.get(), 64U << 20U);
  ASSERT_TRUE(printed);
  const std::vector<std::string> lines = split(trim(*printed), '\n');
  ASSERT_GT(lines.size(), static_cast<std::size_t>(kLines));
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    auto event = contract::decode_event(lines[i]);
    ASSERT_TRUE(event) << lines[i];
    ASSERT_EQ(event->seq, i + 1);
  }
  EXPECT_TRUE(contract::decode_result(lines.back()));
  auto status = exec.child.wait(std::chrono::seconds(60));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 0);
}

TEST_P(Exec, AReaderThatGoesAwayDoesNotEndTheAttempt) {
  Unread exec = start_unread(invocation("alone", "echo made > made.txt"));
  exec.out.reset();
  ASSERT_TRUE(exec.child.wait(std::chrono::seconds(120)));
  const RunOutcome shown = world().cofferdam({"show", "--json", "alone"});
  ASSERT_TRUE(shown.result);
  EXPECT_EQ(shown.result->outcome, contract::Outcome::completed);
}

TEST_P(Exec, CancelLineOnStandardInput) {
  RunOutcome outcome =
      world().cofferdam({"exec", "-"}, invocation("stdin-cancel", "sleep 600") +
                                           R"({"cancel":{"reason":"no longer needed"}})" + "\n");
  EXPECT_EQ(outcome.status.code, 5) << outcome.err;
  ASSERT_TRUE(outcome.result.has_value());
  ASSERT_TRUE(outcome.result->cancel.has_value());
  EXPECT_EQ(outcome.result->cancel->reason, "no longer needed");
  EXPECT_EQ(outcome.result->cancel->by, "stdin");
}

TEST_P(Exec, EndOfInputIsNoCancelUnlessAsked) {
  RunOutcome plain = world().cofferdam({"exec", "-"}, invocation("eof-plain", "sleep 0.5; echo x > x"));
  EXPECT_EQ(plain.status.code, 0) << plain.err;
  RunOutcome asked =
      world().cofferdam({"exec", "--cancel-on-eof", "-"}, invocation("eof-asked", "sleep 600"));
  EXPECT_EQ(asked.status.code, 5) << asked.err;
}

TEST_P(Exec, ReadOnlyPhaseCannotCarryCommands) {
  std::string text = invocation("granted", "true");
  auto json = contract::parse_json(text, 65536);
  ASSERT_TRUE(json);
  (*json)["phase"] = "planning";
  (*json)["commands"] = {{{"id", "test"}, {"argv", {"make", "test"}}}};
  RunOutcome outcome = world().cofferdam({"exec", "-"}, json->dump());
  EXPECT_EQ(outcome.status.code, 2);
  EXPECT_NE(outcome.err.find("$.commands"), std::string::npos) << outcome.err;
}

COFFERDAM_FOR_BOTH_USERS(Exec);

}  // namespace
}  // namespace cofferdam::test
