// The same for OpenAI's Responses API: what would make the vendor fetch, run, keep or recall something.
#include <gtest/gtest.h>

#include "egress/body_policy.h"

namespace cofferdam::egress {
namespace {

GatewayPolicy policy() {
  GatewayPolicy out;
  out.vendor = contract::Vendor::openai;
  out.credential_kind = CredentialKind::openai_api_key;
  out.models = {"m1"};
  out.max_tokens = 1000;
  return out;
}

std::string body(const std::string& more) {
  return R"({"model":"m1","store":false)" + (more.empty() ? "" : "," + more) + "}";
}

std::string input(const std::string& item) {
  return R"("input":[)" + item + "]";
}

struct Case {
  std::string members;
  const char* rule;
  const char* where;
};

void expect_denied(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    BodyVerdict verdict = judge_body(policy(), body(c.members));
    EXPECT_EQ(verdict.decision.action, Action::deny) << c.members;
    EXPECT_EQ(verdict.decision.rule, c.rule) << c.members;
    EXPECT_TRUE(*c.where == '\0' || verdict.decision.where == c.where) << c.members << verdict.decision.where;
    EXPECT_EQ(verdict.body, "") << c.members;
  }
}

TEST(OpenAiBody, DeniesToolsThatTheVendorRuns) {
  expect_denied({
      {R"("tools":[{"type":"web_search"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"web_search_preview"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"file_search","vector_store_ids":[]}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"code_interpreter","container":"c"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"computer_use_preview"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"image_generation"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"mcp","server_url":"https://a.test/"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"local_shell"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"shell"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"name":"f"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"namespace","tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}])",
       "server-side tool", "$.tools[0].tools[0].tools[0].type"},
      {R"("tools":[{"type":"tool_search","execution":"server"}])", "value", "$.tools[0].execution"},
      {R"("tools":[{"type":"tool_search"}])", "missing key", "$.tools[0].execution"},
      {input(R"({"type":"tool_search_call","arguments":{}})"), "missing key", "$.input[0].execution"},
      {input(R"({"type":"additional_tools","tools":[{"type":"web_search"}]})"), "server-side tool",
       "$.input[0].tools[0].type"},
      {input(R"({"type":"tool_search_output","tools":[{"type":"mcp"}]})"), "server-side tool",
       "$.input[0].tools[0].type"},
  });
}

TEST(OpenAiBody, DeniesWhatTheVendorWouldFetchKeepOrRecall) {
  expect_denied({
      {input(R"({"type":"item_reference","id":"x"})"), "stored item", "$.input[0].type"},
      {input(R"({"type":"web_search_call"})"), "item type", "$.input[0].type"},
      {input(R"({"type":"mcp_call"})"), "item type", "$.input[0].type"},
      {input(R"({"type":"computer_call"})"), "item type", "$.input[0].type"},
      {input(R"({"role":"user","content":"x"})"), "item type", "$.input[0].type"},
      {input(R"({"type":"message","content":[{"type":"input_image","image_url":"https://a.test/i"}]})"),
       "content source", "$.input[0].content[0].image_url"},
      {input(R"({"type":"message","content":[{"type":"input_image","file_id":"f"}]})"), "content source",
       "$.input[0].content[0].file_id"},
      {input(R"({"type":"message","content":[{"type":"input_file","file_url":"https://a.test/f"}]})"),
       "content source", "$.input[0].content[0].type"},
      {input(R"({"type":"message","content":[{"file_url":"x","type":"input_file"}]})"), "content source",
       "$.input[0].content[0].type"},
      {input(R"({"type":"function_call_output","output":[{"type":"input_image","image_url":"http://a/"}]})"),
       "content source", "$.input[0].output[0].image_url"},
      {input(R"({"type":"message","content":[{"type":"output_text","annotations":[{}]}]})"), "value",
       "$.input[0].content[0].annotations"},
      {R"("store":true)", "json", ""},  // a second one
      {R"("background":true)", "background", "$.background"},
      {R"("conversation":"c")", "conversation", "$.conversation"},
      {R"("previous_response_id":"r")", "previous_response_id", "$.previous_response_id"},
      {R"("prompt":{"id":"p"})", "stored prompt", "$.prompt"},
      {R"("service_tier":"priority")", "service_tier", "$.service_tier"},
      {R"("metadata":{})", "metadata", "$.metadata"},
      {R"("include":["web_search_call.results"])", "value", "$.include[0]"},
      {R"("text":{"format":{"type":"json_schema","schema":{"$ref":"https://a.test/"}}})", "schema reference",
       "$.text.format.schema[\"$ref\"]"},
      {R"("tool_choice":{"type":"web_search"})", "value", "$.tool_choice.type"},
      {R"("client_metadata":{"x":"y"})", "unknown key", "$.client_metadata.x"},
      {R"("client_metadata":{"session_id":")" + std::string(200, 's') + "\"}", "value",
       "$.client_metadata.session_id"},
      {R"("max_tool_calls":1)", "unknown key", "$.max_tool_calls"},
  });
}

TEST(OpenAiBody, AllowsInlineImages) {
  for (const char* url : {"data:image/png;base64,iVBORw0KGgo=", "data:image/jpeg;base64,"}) {
    BodyVerdict verdict = judge_body(
        policy(), body(input(R"({"type":"message","content":[{"type":"input_image","image_url":")" +
                             std::string(url) + R"("}]})")));
    EXPECT_EQ(verdict.decision.action, Action::relay) << url;
  }
  for (const char* url : {"data:image/svg+xml;base64,AA", "data:text/html,x", "DATA:image/png;base64,AA",
                          "data:image/png;base64,AA\\u000ahttp://a/", "file:///etc/passwd", ""}) {
    BodyVerdict verdict = judge_body(
        policy(), body(input(R"({"type":"message","content":[{"type":"input_image","image_url":")" +
                             std::string(url) + R"("}]})")));
    EXPECT_EQ(verdict.decision.rule, "content source") << url;
  }
}

TEST(OpenAiBody, NothingIsStoredAndTheOutputIsBounded) {
  BodyVerdict absent = judge_body(policy(), R"({"model":"m1"})");
  EXPECT_EQ(absent.body, R"({"model":"m1","store":false,"max_output_tokens":1000})");
  EXPECT_FALSE(absent.max_tokens_lowered);
  BodyVerdict lowered = judge_body(policy(), body(R"("max_output_tokens":5000)"));
  EXPECT_EQ(lowered.body, R"({"model":"m1","store":false,"max_output_tokens":1000})");
  EXPECT_TRUE(lowered.max_tokens_lowered);
  EXPECT_EQ(judge_body(policy(), body(R"("max_output_tokens":5)")).body,
            R"({"model":"m1","store":false,"max_output_tokens":5})");
  BodyVerdict stored = judge_body(policy(), R"({"model":"m1","store":true})");
  EXPECT_EQ(stored.decision.rule, "value");
  EXPECT_EQ(stored.decision.where, "$.store");
  EXPECT_EQ(judge_body(policy(), body(R"("max_output_tokens":0)")).decision.where, "$.max_output_tokens");
  EXPECT_EQ(judge_body(policy(), R"({"store":false})").decision.rule, "model");
  // The ChatGPT backend refuses the key: it is not added there.
  GatewayPolicy login = policy();
  login.credential_kind = CredentialKind::chatgpt;
  EXPECT_EQ(judge_body(login, R"({"model":"m1"})").body, R"({"model":"m1","store":false})");
}

TEST(OpenAiBody, NoVendorNoBody) {
  GatewayPolicy none = policy();
  none.vendor = contract::Vendor::none;
  EXPECT_EQ(judge_body(none, body("")).decision.action, Action::deny);
}

}  // namespace
}  // namespace cofferdam::egress
