// What a vendor can do to an attempt: each failure of the stand-in against each real CLI. Whatever it is, the
// attempt ends by itself or at a bound, the result says why, and the work so far is kept without a branch.
//
// How often a CLI tries again is its own business; that it stops is what is looked at here.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <ostream>
#include <tuple>

#include "base/fd.h"
#include "base/text.h"
#include "contract/json.h"
#include "e2e/fixture.h"
#include "ledger/ledger.h"

namespace cofferdam::test {
namespace {

using contract::Json;
using contract::Outcome;

struct Agent {
  const char* name;
  const char* target;  // what it asks the vendor for
  const char* model;   // a prefix: each attempt has a model of its own, to be known by
  const char* edit;    // a turn that changes the work tree
};
constexpr Agent kAgents[] = {
    {"claude", "/v1/messages", "claude-sonnet-5",
     R"({"blocks":[{"tool_use":{"name":"Write","input":{"file_path":"/workspace/made.txt","content":"made\n"}}}]})"},
    {"codex", "/v1/responses", "gpt-5.5",
     R"({"blocks":[{"tool_use":{"name":"exec_command","input":{"cmd":"echo made > made.txt"}}}]})"},
};

struct Failure {
  const char* name;
  const char* turn;  // every turn of the vendor's after the first
  Outcome outcome;
  const char* control;
  int status;               // of every request that failed, as answered to the box; 0: of either kind
  const char* failure;      // the gateway's name of it; empty: the vendor did answer
  const char* retry_after;  // as the vendor said it
  const char* claude_says;  // a part of the cause's detail
  const char* codex_says;
  const char* config = "";      // in the vendor's table
  const char* deadline = "4m";  // one that ends nothing, for most
};

#define WORDS R"("blocks":[{"text":"These are words enough for more than one delta."}])"
#define ERROR(status, type, rest) \
  R"({"error":{"status":)" #status R"(,"type":")" type R"(","message":"said the vendor")" rest "}}"

constexpr const char* kShort = "head_timeout = \"2s\"\nidle_timeout = \"2s\"\n";

constexpr Failure kFailures[] = {
    {"Refused", "{}", Outcome::failed, "agent", 502, "vendor-unreachable", "", "vendor-unreachable",
     "vendor-unreachable"},
    {"ResetBeforeHeaders", R"({"reset":"before-headers"})", Outcome::failed, "agent", 502, "vendor-reset", "",
     "vendor-reset", "vendor-reset"},
    {"ResetMidStream", R"({"reset":"mid-stream",)" WORDS "}", Outcome::failed, "agent", 200, "vendor-reset",
     "", "200 vendor-reset", "200 vendor-reset"},
    {"StallBeforeHeaders", R"({"stall":"before-headers"})", Outcome::failed, "agent", 504, "vendor-timeout",
     "", "504 vendor-timeout", "504 vendor-timeout", kShort},
    {"StallMidStream", R"({"stall":"mid-stream",)" WORDS "}", Outcome::failed, "agent", 200, "vendor-timeout",
     "", "200 vendor-timeout", "200 vendor-timeout", kShort},
    {"Unauthorised", ERROR(401, "authentication_error", ""), Outcome::failed, "agent", 401, "", "",
     "said the vendor", "said the vendor"},
    {"Forbidden", ERROR(403, "permission_error", ""), Outcome::failed, "agent", 403, "", "",
     "said the vendor", "said the vendor"},
    {"RateLimited", ERROR(429, "rate_limit_error", R"(,"headers":{"retry-after":"1"})"), Outcome::failed,
     "agent", 429, "", "1", "said the vendor", "429 Too Many Requests"},
    // Codex would sleep for the hour, without a word.
    {"RateLimitedForAnHour", ERROR(429, "rate_limit_error", R"(,"headers":{"retry-after":"3600"})"),
     Outcome::failed, "agent", 429, "", "3600", "retry-after 3600", "retry-after 3600"},
    {"ServerError", ERROR(500, "api_error", ""), Outcome::failed, "agent", 500, "", "", "said the vendor",
     "the last request to the vendor: 500"},
    {"Overloaded", ERROR(529, "overloaded_error", ""), Outcome::failed, "agent", 529, "", "",
     "said the vendor", "said the vendor"},
    // Claude asks again without a stream, and is answered with the status.
    {"ErrorMidStream", R"({"error":{"at":"mid-stream","message":"said the vendor"},)" WORDS "}",
     Outcome::failed, "agent", 0, "", "", "said the vendor", "said the vendor"},
    {"NoHttp", R"({"garbage":"before-headers"})", Outcome::failed, "agent", 502, "vendor-protocol", "",
     "vendor-protocol", "vendor-protocol"},
    {"Garbage", R"({"garbage":"mid-stream",)" WORDS "}", Outcome::failed, "agent", 200, "", "", "parse",
     "stream disconnected"},
    {"Truncated", R"({"truncate":true,)" WORDS "}", Outcome::failed, "agent", 200, "", "", "parse",
     "stream closed"},
    {"Flood", R"({"flood_bytes":1073741824})", Outcome::limit, "response", 200, "vendor-too-large", "",
     "too large", "too large", "answer_bytes = 4000000\n"},
    // Every piece comes in time, the end does not.
    {"Trickle", R"({"slow_ms_per_chunk":200,"flood_bytes":1073741824})", Outcome::limit, "deadline", 200,
     "client-gone", "", "200 still open", "200 still open", "", "15s"},
};

void PrintTo(const Agent& agent, std::ostream* out) {
  *out << agent.name;
}
void PrintTo(const Failure& failure, std::ostream* out) {
  *out << failure.name;
}

// One edit by the model, then what the vendor does.
class VendorWorld : public EndToEndWorld {
 protected:
  virtual const Agent& agent() const = 0;

  void SetUp() override {
    EndToEndWorld::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ready_ = need_agent(agent().name);
    model_ = std::string(agent().model) + "-" + random_hex(8);
  }

  // More often than any CLI tries.
  void use_turns(const std::string& turn) {
    std::string script = std::string("{\"turns\":[") + agent().edit;
    for (int i = 0; i < 20; ++i) script += "," + turn;
    use_standin(script + "]}");
  }

  RunOutcome run(const std::string& deadline = "4m") const {
    RunOutcome outcome =
        world().cofferdam({"run", "--json", "--config", world().config(), "--agent", agent().name, "--model",
                           model_, "--attempt-id", "tried", "--deadline", deadline, "Make a file"});
    EXPECT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
    if (!outcome.result.has_value()) outcome.result.emplace();
    return outcome;
  }

  // The requests that the ledger has, in order.
  std::vector<Json> recorded() const {
    std::vector<Json> out;
    auto ledger = ledger::Ledger::open(ledger::ledger_path(world().state()));
    if (!ledger) return out;
    auto events = ledger->events("tried");
    if (!events) return out;
    for (const contract::Event& event : *events) {
      if (event.type != contract::event_type::egress) continue;
      auto data = contract::parse_json(event.data, 1U << 20U);
      if (data && data->value("rule", "") != "presence") out.push_back(*data);
    }
    return out;
  }

  // What is true however it ended: it is over, and the account is the vendor's own.
  void expect_over(const RunOutcome& outcome, std::size_t asked_of_vendor) const {
    EXPECT_TRUE(outcome.result->settlement.box_gone_at.has_value());
    EXPECT_TRUE(processes_with(model_).empty()) << "the CLI is still running";
    EXPECT_EQ(outcome.result->egress.requests, asked_of_vendor);
    EXPECT_EQ(outcome.result->usage.requests, asked_of_vendor);
    EXPECT_EQ(outcome.result->egress.denied, 0U);
    EXPECT_EQ(recorded().size(), asked_of_vendor);
  }

  std::string branches() const {
    return world().git({"for-each-ref", "--format=%(refname)", "refs/heads/cofferdam/"});
  }

  bool ready_ = false;
  std::string model_;  // in the command line of the CLI, and of nothing else
};

// A CLI may hang up as soon as it has seen enough of an answer, before the vendor has ended it.
bool is_failure(const Json& event, const std::string& wanted) {
  const Json& found = event["failure"];
  if (wanted.empty()) return found.is_null() || (found == "client-gone" && event["status"] == 200);
  return found == wanted;
}

class VendorFailure : public VendorWorld,
                      public ::testing::WithParamInterface<std::tuple<User, Agent, Failure>> {
 protected:
  User user() const override { return std::get<0>(GetParam()); }
  const Agent& agent() const override { return std::get<1>(GetParam()); }
};

// Bound, so that nobody else gets the port, and not listening.
UniqueFd closed_port(std::uint16_t* port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket.get(), generic, length), 0);
  EXPECT_EQ(::getsockname(socket.get(), generic, &length), 0);
  *port = ntohs(address.sin_port);
  return socket;
}

TEST_P(VendorFailure, EndsAndIsNamed) {
  if (!ready_) return;
  const Failure& failure = std::get<2>(GetParam());
  const bool refused = std::string(failure.name) == "Refused";
  use_turns(failure.turn);
  std::uint16_t port = 0;
  const UniqueFd closed = closed_port(&port);
  write_config(refused ? fmt::format("https://127.0.0.1:{}", port) : standin().url(), failure.config);
  const RunOutcome outcome = run(failure.deadline);
  const contract::ResultRecord& result = *outcome.result;
  EXPECT_EQ(outcome.status.code, failure.outcome == Outcome::limit ? 4 : 1) << outcome.err;
  EXPECT_EQ(result.outcome, failure.outcome);
  EXPECT_EQ(result.cause.control, failure.control);
  const bool claude = std::string(agent().name) == "claude";
  EXPECT_NE(result.cause.detail.find(claude ? failure.claude_says : failure.codex_says), std::string::npos)
      << result.cause.detail;

  const std::vector<Json> events = recorded();
  expect_over(outcome, refused ? events.size() : asked(agent().target).size());
  ASSERT_GT(events.size(), refused ? 0U : 1U);
  EXPECT_EQ(standin().requests().empty(), refused);
  EXPECT_EQ(events[0]["status"], refused ? 502 : 200);
  for (std::size_t i = refused ? 0 : 1; i < events.size(); ++i) {
    EXPECT_TRUE(failure.status == 0 || events[i]["status"] == failure.status) << events[i];
    EXPECT_TRUE(is_failure(events[i], failure.failure)) << events[i];
    EXPECT_EQ(events[i]["retry_after"], *failure.retry_after ? Json(failure.retry_after) : Json(nullptr));
  }

  // The work so far is kept where it can be found, and is no branch of the user's.
  EXPECT_EQ(result.change.commit.has_value(), !refused);
  EXPECT_FALSE(result.change.ref.has_value());
  EXPECT_EQ(branches(), "");
}

std::string failure_name_of(const ::testing::TestParamInfo<std::tuple<User, Agent, Failure>>& param) {
  return fmt::format("{}_{}_{}", std::get<2>(param.param).name, std::get<1>(param.param).name,
                     user_name(std::get<0>(param.param)));
}

INSTANTIATE_TEST_SUITE_P(All, VendorFailure,
                         ::testing::Combine(::testing::Values(User::rootless, User::root),
                                            ::testing::ValuesIn(kAgents), ::testing::ValuesIn(kFailures)),
                         failure_name_of);

class Vendor : public VendorWorld, public ::testing::WithParamInterface<std::tuple<User, Agent>> {
 protected:
  User user() const override { return std::get<0>(GetParam()); }
  const Agent& agent() const override { return std::get<1>(GetParam()); }
};

// The control of all the above.
TEST_P(Vendor, GoodAnswerIsABranch) {
  if (!ready_) return;
  use_turns("{" WORDS "}");
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.result->cause.detail, "exit code 0");
  expect_over(outcome, asked(agent().target).size());
  for (const Json& event : recorded()) {
    EXPECT_EQ(event["status"], 200);
    EXPECT_TRUE(is_failure(event, "")) << event;
  }
  EXPECT_EQ(branches(), "refs/heads/cofferdam/tried");
  EXPECT_EQ(world().git({"show", "cofferdam/tried:made.txt"}), "made");
}

// A failure that the CLI gets over is no cause of anything, and leaves no word in the result.
TEST_P(Vendor, FailureThatPassesIsForgotten) {
  if (!ready_) return;
  use_standin(std::string("{\"turns\":[") + agent().edit + "," + ERROR(500, "api_error", "") + "," +
              R"({"reset":"before-headers"},{)" WORDS "}]}");
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.result->cause.detail, "exit code 0");
  expect_over(outcome, 4);
  EXPECT_EQ(branches(), "refs/heads/cofferdam/tried");
}

// About what 64,000 tokens are. A CLI that does not wait for its reader loses the end of what it prints.
TEST_P(Vendor, LongAnswerIsWhole) {
  if (!ready_) return;
  use_turns(R"({"blocks":[{"text":")" + std::string(250'000, 'x') + R"("}]})");
  const RunOutcome outcome = run();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err << outcome.result->cause.detail;
  expect_over(outcome, 2);
  EXPECT_EQ(branches(), "refs/heads/cofferdam/tried");
}

// The most memory that the gateway of this supervisor has had so far, in KiB; 0 when it is not there.
std::uint64_t gateway_memory(int supervisor) {
  for (int pid : processes_with("internal-gateway")) {
    auto status = read_file(fmt::format("/proc/{}/status", pid), 1U << 16U);
    if (!status || status->find(fmt::format("PPid:\t{}\n", supervisor)) == std::string::npos) continue;
    const std::size_t at = status->find("VmHWM:");
    if (at != std::string::npos) return std::strtoull(status->c_str() + at + 6, nullptr, 10);
  }
  return 0;
}

// Six times as much as the gateway may have goes through it.
TEST_P(Vendor, FloodFillsNoMemory) {
  if (!ready_) return;
  use_turns(R"({"flood_bytes":1073741824})");
  write_config(standin().url(), "answer_bytes = 200000000\n");
  std::future<RunOutcome> running = std::async(std::launch::async, [this] { return run(); });
  std::uint64_t most = 0;
  while (running.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    for (int pid : processes_with(world().config())) most = std::max(most, gateway_memory(pid));
  }
  const RunOutcome outcome = running.get();
  EXPECT_EQ(outcome.result->cause.control, "response") << outcome.result->cause.detail;
  expect_over(outcome, 2);
  EXPECT_GT(recorded().back().value("response_bytes", std::uint64_t{0}), 190'000'000U);
  EXPECT_GT(most, 0U) << "the gateway was never seen";
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
  EXPECT_LT(most, 32U * 1024U);
#endif
}

INSTANTIATE_TEST_SUITE_P(All, Vendor,
                         ::testing::Combine(::testing::Values(User::rootless, User::root),
                                            ::testing::ValuesIn(kAgents)),
                         [](const ::testing::TestParamInfo<std::tuple<User, Agent>>& param) {
                           return fmt::format("{}_{}", std::get<1>(param.param).name,
                                              user_name(std::get<0>(param.param)));
                         });

}  // namespace
}  // namespace cofferdam::test
