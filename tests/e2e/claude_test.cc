// The real Claude CLI in the box, its vendor played by the stand-in over verified TLS.
#include <fmt/core.h>

#include "base/text.h"
#include "contract/json.h"
#include "contract/plan_answer.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

using contract::Json;

class Claude : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ready_ = need_agent("claude");
  }
  bool ready_ = false;

  RunOutcome run(std::vector<std::string> args) {
    args.insert(args.begin() + 1, {"--json", "--config", world().config(), "--model", "claude-sonnet-5"});
    RunOutcome outcome = world().cofferdam(args);
    EXPECT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
    if (!outcome.result.has_value()) outcome.result.emplace();
    return outcome;
  }

  // The header of every request to the messages route.
  std::vector<Json> messages() const { return asked("/v1/messages"); }
};

TEST_P(Claude, ImplementationEditsAndRuns) {
  if (!ready_) return;
  use_standin(script_file("edit-and-run.json"));
  RunOutcome outcome = run({"run", "--attempt-id", "edited", "Greet the world"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;

  // Exactly the expected tree: what plain git makes of the same edits.
  Captured expected = world().as_user(
      {"/bin/sh", "-c",
       "git clone -q \"$1\" \"$2\" && cd \"$2\" && sed -i s/Hello/'Hello, world'/ README.md && "
       "printf 'one\\ntwo\\n' > notes.txt && git add -A && git write-tree",
       "sh", world().repo(), world().home() + "/copy"});
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/edited^{tree}"}), trim(expected.out));
  EXPECT_EQ(outcome.result->agent.version, "2.1.197");
  EXPECT_NE(world().git({"log", "-1", "--format=%B", "cofferdam/edited"}).find("greets the world"),
            std::string::npos);

  std::vector<Json> requests = messages();
  ASSERT_GE(requests.size(), 5U);
  for (const Json& request : requests) {
    EXPECT_EQ(request["headers"].value("x-api-key", ""), kTestKey);
    EXPECT_FALSE(request["headers"].contains("authorization"));
    EXPECT_EQ(request.value("/expect/ok"_json_pointer, true), true) << request["expect"].dump();
  }
  EXPECT_EQ(outcome.result->egress.requests, requests.size());
  EXPECT_EQ(standin().requests().size(), requests.size()) << "the vendor got something else than messages";
  EXPECT_EQ(outcome.result->vendor_upstream, standin().url());
  EXPECT_GT(outcome.result->usage.input_tokens, 0U);
}

TEST_P(Claude, PlanIsCheckedAndNothingChanges) {
  if (!ready_) return;
  use_standin(script_file("plan.json"));
  RunOutcome outcome = run({"plan", "How would you greet the world?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  auto plan = contract::decode_plan_answer(outcome.result->answer.value_or(""));
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_FALSE(plan->steps.empty());
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
  EXPECT_FALSE(outcome.result->change.ref.has_value());
}

bool proven(const contract::ResultRecord& result, const std::string& name) {
  for (const contract::ControlFact& fact : result.controls) {
    if (fact.name == name) return fact.required && fact.enforced;
  }
  return false;
}

TEST_P(Claude, PlansWithoutAShell) {
  if (!ready_) return;
  use_standin(script_file("plan.json"));
  RunOutcome outcome = run({"plan", "--shell", "none", "How would you greet the world?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(outcome.result->shell, contract::Shell::none);
  EXPECT_TRUE(proven(*outcome.result, "execution"));
  EXPECT_TRUE(proven(*outcome.result, "landlock"));
  auto plan = contract::decode_plan_answer(outcome.result->answer.value_or(""));
  ASSERT_TRUE(plan) << plan.error().line();
}

TEST_P(Claude, PlanThatIsNoPlanFails) {
  if (!ready_) return;
  use_standin(R"({"turns":[{"blocks":[{"text":"I would rather chat."}]},{"blocks":[{"text":"No."}]}]})");
  RunOutcome outcome = run({"plan", "How?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::failed);
  EXPECT_EQ(outcome.result->process.exit_code, 0) << "the CLI itself calls this a success";
}

TEST_P(Claude, QuestionIsAnswered) {
  if (!ready_) return;
  use_standin(script_file("question.json"));
  RunOutcome outcome = run({"ask", "What does the README say?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_FALSE(outcome.result->answer.value_or("").empty());
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
}

// F23: a model that tries to write in a read-only phase meets the box, not a permission mode.
TEST_P(Claude, ReadOnlyPhaseHolds) {
  if (!ready_) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"Write","input":{"file_path":"/workspace/evil.txt","content":"x"}}}]},
    {"blocks":[{"tool_use":{"name":"Bash","input":{"command":"touch /workspace/evil2.txt","description":"x"}}}]},
    {"blocks":[{"text":"done"}]}]})");
  RunOutcome outcome = run({"ask", "Write something"});
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
}

// Everything readable in the box is searched for the credential, by a pattern that does not contain it.
TEST_P(Claude, CredentialIsNowhereInTheBox) {
  if (!ready_) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"Bash","input":{"description":"search","command":
      "env > /tmp/env.txt; printf 'planted %sSECRET-2f81c0de' sk-ant-test- > /tmp/control.txt; P='sk-ant-test-[S]ECRET-2f81c0d[e]'; grep -rlsaE $P /tmp /home /workspace /etc /run /dev/shm > found.txt; for e in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $e 2>/dev/null | grep -qaE $P && echo $e >> found.txt; done; tr '\\0' '\\n' < /proc/self/environ | grep -c ANTHROPIC > count.txt; true"}}}]},
    {"blocks":[{"text":"searched"}]}]})");
  RunOutcome outcome = run({"run", "--attempt-id", "search", "Search"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  // The one find is the control: a file that the test planted.
  EXPECT_EQ(world().git({"show", "cofferdam/search:found.txt"}), "/tmp/control.txt");
  EXPECT_EQ(messages().front()["headers"].value("x-api-key", ""), kTestKey) << "the vendor did get it";
}

TEST_P(Claude, BadCredentialIsTheVendorsWord) {
  if (!ready_) return;
  use_standin(script_file("question.json"));
  mutable_world().extra_env = {"ANTHROPIC_API_KEY=sk-ant-wrong"};
  RunOutcome outcome = run({"ask", "Anything?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::failed);
  EXPECT_NE(outcome.result->cause.detail.find("Invalid API key"), std::string::npos)
      << outcome.result->cause.detail;
  EXPECT_EQ(outcome.out.find("sk-ant-wrong"), std::string::npos);
}

TEST_P(Claude, UnknownModelIsTheVendorsWord) {
  if (!ready_) return;
  use_standin(R"({"models":["claude-other"],"turns":[{"blocks":[{"text":"x"}]}]})");
  RunOutcome outcome = run({"ask", "Anything?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_NE(outcome.result->cause.detail.find("claude-sonnet-5"), std::string::npos)
      << outcome.result->cause.detail;
}

TEST_P(Claude, SilentVendorEndsAtTheDeadline) {
  if (!ready_) return;
  use_standin(R"({"turns":[{"stall":"before-headers"}]})");
  RunOutcome outcome = run({"ask", "--deadline", "6s", "Anything?"});
  EXPECT_EQ(outcome.status.code, 4);
  EXPECT_EQ(outcome.result->cause.control, "deadline");
  EXPECT_NE(outcome.result->cause.detail.find("the last request to the vendor: still open"),
            std::string::npos)
      << outcome.result->cause.detail;
  EXPECT_TRUE(outcome.result->settlement.box_gone_at.has_value());
}

TEST_P(Claude, RequestBudgetEndsTheAttempt) {
  if (!ready_) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"Read","input":{"file_path":"README.md"}}}]},
    {"blocks":[{"tool_use":{"name":"Read","input":{"file_path":"README.md"}}}]},
    {"blocks":[{"tool_use":{"name":"Read","input":{"file_path":"README.md"}}}]},
    {"blocks":[{"text":"x"}]}]})");
  world().write(world().config(), "[vendors.anthropic]\nupstream = \"" + standin().url() +
                                      "\"\nca_bundle = \"" + standin().ca_file() +
                                      "\"\n[limits]\nrequests = 2\n");
  RunOutcome outcome = run({"ask", "Read on"});
  EXPECT_EQ(outcome.status.code, 4);
  EXPECT_EQ(outcome.result->cause.control, "requests");
  EXPECT_EQ(messages().size(), 2U);
}

// In a network namespace of the test's own with nothing but lo: whoever looked up a name or tried another
// address would show in the kernel's counters, as the control does.
TEST_P(Claude, NoOtherConnectionOrNameLookUp) {
  if (!ready_) return;
  if (!running_as_root()) return skip_or_fail("root", "a network namespace of the test's own needs root");
  use_standin(script_file("question.json"));
  // The stand-in listens in our namespace; this one has its own copy of it, started by the script below.
  const std::string folder = world().root() + "/isolated";
  const std::string script = fmt::format(
      R"sh(set -e
ip link set lo up
counters() {{ awk '/^Udp:/ && $2 ~ /[0-9]/ {{print "udp", $5}} /^Ip:/ && $2 ~ /[0-9]/ {{print "noroute", $13}}' /proc/net/snmp; }}
mkdir -p {0}
"{1}/cofferdam-standin" --script {2}/standin/script.json --record {0}/record --ready {0}/ready --ca-out {0}/ca.pem --exit-on-stdin-eof < {0}.hold &
exec 9> {0}.hold
while ! test -s {0}/ready; do kill -0 $!; sleep 0.1; done
chmod 644 {0}/ca.pem
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' {0}/ready)
printf '[vendors.anthropic]\nupstream = "%s"\nca_bundle = "{0}/ca.pem"\n' "$url" > {0}/config.toml
counters > {0}/before
setpriv {3} -- env -i PATH=/usr/bin:/bin HOME={4} COFFERDAM_STATE_DIR={5} COFFERDAM_AGENTS_DIR={6} ANTHROPIC_API_KEY={7} \
  {8}/cofferdam ask --json --config {0}/config.toml --model claude-sonnet-5 --repo {9} 'What does it say?' > {0}/result
counters > {0}/after
getent ahosts name.invalid > /dev/null || :
(exec 3<> /dev/tcp/192.0.2.1/443) 2> /dev/null || :
counters > {0}/control
exec 9>&-
wait
)sh",
      folder, COFFERDAM_BUILD_DIR, world().root(),
      GetParam() == User::root ? "--reuid=0" : "--reuid=12345 --regid=12345 --clear-groups", world().home(),
      world().state(), installed_agents(), kTestKey, world().programs(), world().repo());
  SpawnOptions options;
  options.program = "/usr/bin/unshare";
  options.argv = {"unshare", "--net", "--", "/bin/bash", "-c", "mkfifo " + folder + ".hold; " + script};
  options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  auto captured = run_capture(options, "", {});
  ASSERT_TRUE(captured) << captured.error().line();
  ASSERT_TRUE(captured->status.success()) << captured->err;
  auto before = read_file(folder + "/before", 4096);
  auto after = read_file(folder + "/after", 4096);
  auto control = read_file(folder + "/control", 4096);
  ASSERT_TRUE(before && after && control);
  EXPECT_EQ(*before, *after) << "a datagram was sent or an address without a route was tried";
  EXPECT_NE(*after, *control) << "the control: such attempts do show";
}

COFFERDAM_FOR_BOTH_USERS(Claude);

}  // namespace
}  // namespace cofferdam::test
