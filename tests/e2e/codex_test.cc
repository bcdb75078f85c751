// The real Codex CLI in the box, its vendor played by the stand-in over verified TLS.
#include "base/text.h"
#include "contract/json.h"
#include "contract/plan_answer.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

using contract::Json;

// The first is offered its tools in "code mode", the second one by one.
constexpr const char* kCodeModeModel = "gpt-6.2-sol";
constexpr const char* kClassicModel = "gpt-5.5";

class Codex : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ready_ = need_agent("codex");
  }
  bool ready_ = false;

  RunOutcome run(std::vector<std::string> args) {
    args.insert(args.begin() + 1, {"--json", "--config", world().config(), "--agent", "codex"});
    RunOutcome outcome = world().cofferdam(args);
    EXPECT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
    if (!outcome.result.has_value()) outcome.result.emplace();
    return outcome;
  }

  std::vector<Json> responses() const { return asked("/v1/responses"); }

  // The tree of the scripted change, made by plain git.
  std::string expected_tree() const {
    const Captured made = world().as_user(
        {"/bin/sh", "-c",
         "git clone -q \"$1\" \"$2\" && cd \"$2\" && sed -i s/Hello/'Hello, world'/ README.md && "
         "printf 'one\\ntwo\\n' > notes.txt && git add -A && git write-tree",
         "sh", world().repo(), world().home() + "/copy"});
    return std::string(trim(made.out));
  }

  void expect_implementation(const std::string& model) {
    use_standin(script_file("codex-edit-and-run.json"));
    RunOutcome outcome = run({"run", "--model", model, "--attempt-id", "edited", "Greet the world"});
    ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
    EXPECT_EQ(world().git({"rev-parse", "cofferdam/edited^{tree}"}), expected_tree());
    EXPECT_EQ(outcome.result->agent.version, "0.171.0");
    EXPECT_NE(world().git({"log", "-1", "--format=%B", "cofferdam/edited"}).find("greets the world"),
              std::string::npos);
    const std::vector<Json> requests = responses();
    ASSERT_EQ(requests.size(), 4U);
    for (const Json& request : requests) {
      EXPECT_EQ(request["headers"].value("authorization", ""), std::string("Bearer ") + kTestKey);
      EXPECT_FALSE(request["headers"].contains("x-api-key"));
      EXPECT_EQ(request["body"]["model"], model);
      EXPECT_EQ(request.value("/expect/ok"_json_pointer, true), true) << request["expect"].dump();
    }
    EXPECT_EQ(outcome.result->egress.requests, requests.size());
    EXPECT_EQ(outcome.result->egress.denied, 0U);
    EXPECT_EQ(standin().requests().size(), requests.size()) << "the vendor got something else than turns";
    EXPECT_EQ(outcome.result->vendor_upstream, standin().url());
    EXPECT_GT(outcome.result->usage.input_tokens, 0U);
  }

  static bool has_item(const Json& request, const char* type) {
    for (const Json& item : request["body"]["input"]) {
      if (item.value("type", "") == type) return true;
    }
    return false;
  }
};

TEST_P(Codex, ImplementationInCodeMode) {
  if (!ready_) return;
  expect_implementation(kCodeModeModel);
  EXPECT_TRUE(has_item(responses().front(), "additional_tools"));
  EXPECT_TRUE(has_item(responses().back(), "custom_tool_call_output"));
  EXPECT_FALSE(has_item(responses().back(), "function_call"));
}

TEST_P(Codex, ImplementationWithClassicTools) {
  if (!ready_) return;
  expect_implementation(kClassicModel);
  EXPECT_FALSE(has_item(responses().front(), "additional_tools"));
  EXPECT_TRUE(has_item(responses().back(), "function_call_output"));
}

TEST_P(Codex, PlanIsCheckedAndNothingChanges) {
  if (!ready_) return;
  use_standin(script_file("codex-plan.json"));
  RunOutcome outcome = run({"plan", "How would you greet the world?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  auto plan = contract::decode_plan_answer(outcome.result->answer.value_or(""));
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_FALSE(plan->steps.empty());
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
  EXPECT_FALSE(outcome.result->change.ref.has_value());
  EXPECT_EQ(responses().front()["body"]["text"]["format"]["type"], "json_schema");
}

TEST_P(Codex, PlansWithoutAShell) {
  if (!ready_) return;
  use_standin(script_file("codex-plan.json"));
  RunOutcome outcome = run({"plan", "--shell", "none", "How would you greet the world?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(outcome.result->shell, contract::Shell::none);
  auto plan = contract::decode_plan_answer(outcome.result->answer.value_or(""));
  ASSERT_TRUE(plan) << plan.error().line();
}

TEST_P(Codex, PlanThatIsNoPlanFails) {
  if (!ready_) return;
  use_standin(R"({"turns":[{"blocks":[{"text":"I would rather chat."}]}]})");
  RunOutcome outcome = run({"plan", "How?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::failed);
  EXPECT_EQ(outcome.result->process.exit_code, 0) << "the CLI itself calls this a success";
}

TEST_P(Codex, QuestionIsAnswered) {
  if (!ready_) return;
  use_standin(script_file("codex-question.json"));
  RunOutcome outcome = run({"ask", "What does the README say?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.result->answer.value_or(""), "The greeting is in README.md.");
  EXPECT_EQ(outcome.result->agent.model, kCodeModeModel) << "the configuration's default";
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
}

// F23: a model that tries to write in a read-only phase meets the box.
TEST_P(Codex, ReadOnlyPhaseHolds) {
  if (!ready_) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"exec_command","input":{"cmd":"touch /workspace/evil.txt"}}}]},
    {"blocks":[{"tool_use":{"name":"apply_patch","input":{"input":"*** Begin Patch\n*** Add File: evil2.txt\n+x\n*** End Patch\n"}}}]},
    {"blocks":[{"text":"done"}]}]})");
  RunOutcome outcome = run({"ask", "Write something"});
  EXPECT_EQ(outcome.result->change.tree, world().git({"rev-parse", "HEAD^{tree}"}));
  EXPECT_EQ(responses().size(), 3U) << "both tools were tried";
}

// What the repository says to the agent and about its settings is content: no file of it configures the CLI.
TEST_P(Codex, RepositoryConfiguresNothing) {
  if (!ready_) return;
  world().commit({{"AGENTS.md", "PLANTED-INSTRUCTION-77\n"},
                  {".codex/config.toml",
                   "model = \"planted\"\n[mcp_servers.planted]\ncommand = \"/bin/touch\"\n"
                   "args = [\"/tmp/planted\"]\n"}},
                 "planted");
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"exec_command","input":{"cmd":"ls /tmp; ls -a"}}}]},
    {"blocks":[{"text":"looked"}]}]})");
  RunOutcome outcome = run({"ask", "Look"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  const std::vector<Json> requests = responses();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests.front()["body"]["model"], kCodeModeModel);
  EXPECT_EQ(requests.front().dump().find("PLANTED-INSTRUCTION-77"), std::string::npos);
  const std::string said = requests.back()["body"]["input"].back().dump();
  EXPECT_NE(said.find(".codex"), std::string::npos) << "the control: the folder is there " << said;
  EXPECT_EQ(said.find("planted"), std::string::npos);
}

// Everything readable in the box is searched for the credential, by a pattern that does not contain it.
TEST_P(Codex, CredentialIsNowhereInTheBox) {
  if (!ready_) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"exec_command","input":{"yield_time_ms":30000,"cmd":
      "env > /tmp/env.txt; printf 'planted %sSECRET-2f81c0de' sk-ant-test- > /tmp/control.txt; P='sk-ant-test-[S]ECRET-2f81c0d[e]'; grep -rlsaE $P /tmp /home /workspace /etc /run /dev/shm > found.txt; for e in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $e 2>/dev/null | grep -qaE $P && echo $e >> found.txt; done; true"}}}]},
    {"blocks":[{"text":"searched"}]}]})");
  RunOutcome outcome = run({"run", "--attempt-id", "search", "Search"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  // The one find is the control: a file that the test planted.
  EXPECT_EQ(world().git({"show", "cofferdam/search:found.txt"}), "/tmp/control.txt");
  EXPECT_EQ(responses().front()["headers"].value("authorization", ""), std::string("Bearer ") + kTestKey)
      << "the vendor did get it";
}

TEST_P(Codex, BadCredentialIsTheVendorsWord) {
  if (!ready_) return;
  use_standin(script_file("codex-question.json"));
  mutable_world().extra_env = {"OPENAI_API_KEY=sk-wrong"};
  RunOutcome outcome = run({"ask", "Anything?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::failed);
  EXPECT_NE(outcome.result->cause.detail.find("Incorrect API key"), std::string::npos)
      << outcome.result->cause.detail;
  EXPECT_EQ(outcome.out.find("sk-wrong"), std::string::npos);
}

TEST_P(Codex, UnknownModelIsTheVendorsWord) {
  if (!ready_) return;
  use_standin(R"({"models":["gpt-other"],"turns":[{"blocks":[{"text":"x"}]}]})");
  RunOutcome outcome = run({"ask", "Anything?"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_NE(outcome.result->cause.detail.find(kCodeModeModel), std::string::npos)
      << outcome.result->cause.detail;
}

// The CLI itself would wait for ever.
TEST_P(Codex, SilentVendorEndsAtTheDeadline) {
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

TEST_P(Codex, RequestBudgetEndsTheAttempt) {
  if (!ready_) return;
  use_standin(script_file("codex-edit-and-run.json"));
  auto config = read_file(world().config(), 1U << 16U);
  ASSERT_TRUE(config);
  world().write(world().config(), *config + "[limits]\nrequests = 2\n");
  RunOutcome outcome = run({"ask", "Read on"});
  EXPECT_EQ(outcome.status.code, 4);
  EXPECT_EQ(outcome.result->cause.control, "requests");
  EXPECT_EQ(responses().size(), 2U);
}

COFFERDAM_FOR_BOTH_USERS(Codex);

}  // namespace
}  // namespace cofferdam::test
