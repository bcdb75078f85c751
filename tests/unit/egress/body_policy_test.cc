// The body is policy (attacks.md G1): what would make the vendor fetch, run or store something is denied by
// its place.
#include "egress/body_policy.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

GatewayPolicy policy() {
  GatewayPolicy out;
  out.vendor = contract::Vendor::anthropic;
  out.models = {"m1", "m2"};
  out.max_tokens = 1000;
  return out;
}

// A whole body around `more` members.
std::string body(const std::string& more) {
  return R"({"model":"m1","max_tokens":10)" + (more.empty() ? "" : "," + more) + "}";
}

struct Case {
  const char* members;
  const char* rule;
  const char* where;
};

void expect_denied(const std::string& text, const char* rule, const char* where, int status = 403) {
  BodyVerdict verdict = judge_body(policy(), text);
  EXPECT_EQ(verdict.decision.action, Action::deny) << text;
  EXPECT_EQ(verdict.decision.rule, rule) << text;
  EXPECT_EQ(verdict.decision.where, where) << text;
  EXPECT_EQ(verdict.decision.status, status) << text;
  EXPECT_EQ(verdict.body, "") << text;
}

TEST(BodyPolicy, AllowsInlineContentAndClientTools) {
  const char* cases[] = {
      R"("messages":[{"role":"user","content":"hello"}])",
      R"("system":"be brief","messages":[])",
      R"("system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[])",
      R"("tools":[],"messages":[])",
      R"("tools":[{"name":"Bash","input_schema":{"type":"object"}},{"type":"custom"}],"messages":[])",
      R"("tools":[{"name":"a","input_schema":{"properties":{"$ref":{"type":"string"}},"$ref":"#/a"}}])",
      R"("messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AA"}}]}])",
      R"("messages":[{"content":[{"type":"document","source":{"type":"text","data":"x"}}]}])",
      // A tool's input is data, also when a tool of ours takes sources or files.
      R"("messages":[{"content":[{"type":"tool_use","input":{"source":{"type":"url"},"file_id":"f"}}]}])",
      // What programs print has NUL in it.
      R"("messages":[{"content":[{"type":"tool_result","content":"a\u0000b"}]}])",
      R"("stream":true,"thinking":{"type":"adaptive"},"messages":[])",
  };
  for (const char* members : cases) {
    BodyVerdict verdict = judge_body(policy(), body(members));
    EXPECT_EQ(verdict.decision.action, Action::relay)
        << members << verdict.decision.rule << verdict.decision.where;
    EXPECT_FALSE(verdict.body.empty());
  }
}

TEST(BodyPolicy, DeniesWhatTheVendorWouldDoForTheBox) {
  const Case cases[] = {
      {R"("tools":[{"type":"web_fetch_20250910","name":"web_fetch"}])", "server-side tool",
       "$.tools[0].type"},
      {R"("tools":[{"name":"a"},{"type":"web_search_20250305"}])", "server-side tool", "$.tools[1].type"},
      {R"("tools":[{"type":"code_execution_20250825"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"mcp_toolset"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":null}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":["custom"]}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"Custom"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"bash_20250124"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":[{"type":"computer_20250124"}])", "server-side tool", "$.tools[0].type"},
      {R"("tools":{"0":{"type":"web_fetch"}})", "value", "$.tools"},
      {R"("tools":["web_search"])", "server-side tool", "$.tools[0]"},
      {R"("tools":[{"name":"a","allowed_callers":["code_execution_20250825"]}])", "unknown key",
       "$.tools[0].allowed_callers"},
      {R"("tools":[{"name":"a","input_schema":{"p":[{"$ref":"https://a.test/s"}]}}])", "schema reference",
       "$.tools[0].input_schema.p[0][\"$ref\"]"},
      {R"("tools":[{"name":"a","input_schema":{"$schema":"https://a.test/s"}}])", "schema reference",
       "$.tools[0].input_schema[\"$schema\"]"},
      {R"("tools":[{"name":"a","input_schema":{"$id":"https://a.test/"}}])", "schema reference",
       "$.tools[0].input_schema[\"$id\"]"},
      {R"("messages":[{"content":[{"type":"image","source":{"type":"text","media_type":"text/plain","data":"https://a.test/s"}}]}])",
       "content source", "$.messages[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":""}}]}])",
       "value", "$.messages[0].content[0].source.media_type"},
      {R"("messages":[{"content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"https://a.test/s"}}]}])",
       "content source", "$.messages[0].content[0].source.data"},
      {R"("mcp_servers":[])", "mcp_servers", "$.mcp_servers"},
      {R"("container":null)", "container", "$.container"},
      {R"("service_tier":"auto")", "service_tier", "$.service_tier"},
      {R"("speed":"fast")", "speed", "$.speed"},
      {R"("inference_geo":"us")", "unknown key", "$.inference_geo"},
      {R"("context_management":{"edits":[{"type":"compact_20260112"}]})", "context edit",
       "$.context_management.edits[0].type"},
      {R"("messages":[{"content":[{"type":"search_result","source":"https://a.test/","content":[]}]}])",
       "content type", "$.messages[0].content[0].type"},
      {R"("messages":[{"content":[{"type":"mcp_tool_use"}]}])", "content type",
       "$.messages[0].content[0].type"},
      {R"("messages":[{"content":[{"text":"x"}]}])", "content type", "$.messages[0].content[0].type"},
      {R"("messages":[{"content":["x"]}])", "content type", "$.messages[0].content[0]"},
      {R"("messages":[{"content":[{"type":"image","file_id":"f"}]}])", "content source",
       "$.messages[0].content[0].file_id"},
      {R"("messages":[{"role":"tool"}])", "value", "$.messages[0].role"},
      {R"("messages":"x")", "value", "$.messages"},
      {R"("messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://a.test/s"}}]}])",
       "content source", "$.messages[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}])",
       "content source", "$.messages[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"url"}}]}]}])",
       "content source", "$.messages[0].content[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"document","source":{"type":"content","content":[]}}]}])",
       "content source", "$.messages[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"container_upload","file_id":"f"}]}])", "content type",
       "$.messages[0].content[0].type"},
      {R"("messages":[{"content":[{"type":"image","source":{"url":"https://a.test/"}}]}])", "content source",
       "$.messages[0].content[0].source.type"},
      {R"("messages":[{"content":[{"type":"image","source":[{"type":"base64"}]}]}])", "content source",
       "$.messages[0].content[0].source"},
      {R"("system":[{"type":"document","source":{"type":"url"}}])", "value", "$.system[0].type"},
      {R"("system":[{"text":"x"}])", "value", "$.system[0].type"},
  };
  for (const Case& c : cases) expect_denied(body(c.members), c.rule, c.where);
}

TEST(BodyPolicy, ModelIsOneOfTheNamedOnes) {
  for (const char* text : {R"({"max_tokens":1})", R"({"model":"m3","max_tokens":1})",
                           R"({"model":"M1","max_tokens":1})", R"({"model":"m1 ","max_tokens":1})",
                           R"({"model":["m1"],"max_tokens":1})", R"({"model":null,"max_tokens":1})"}) {
    expect_denied(text, "model", "$.model");
  }
  EXPECT_EQ(judge_body(policy(), R"({"model":"m2","max_tokens":1})").decision.action, Action::relay);
  GatewayPolicy none = policy();
  none.models.clear();
  EXPECT_EQ(judge_body(none, body("")).decision.rule, "model");
}

TEST(BodyPolicy, MaxTokensAreLoweredToTheCeiling) {
  BodyVerdict lowered = judge_body(policy(), R"({"model":"m1","max_tokens":64000})");
  EXPECT_TRUE(lowered.max_tokens_lowered);
  EXPECT_EQ(lowered.body, R"({"model":"m1","max_tokens":1000})");
  BodyVerdict kept = judge_body(policy(), R"({"model":"m1","max_tokens":1000})");
  EXPECT_FALSE(kept.max_tokens_lowered);
  for (const char* number : {"0", "-1", "1.5", "1e3", "\"10\"", "null", "true", "[1]"}) {
    expect_denied(R"({"model":"m1","max_tokens":)" + std::string(number) + "}", "max_tokens", "$.max_tokens");
  }
  expect_denied(R"({"model":"m1"})", "max_tokens", "$.max_tokens");
}

// What two parsers could read differently is not read at all.
TEST(BodyPolicy, RefusesWhatIsNotStrictJson) {
  for (const char* text :
       {"", "x", "{}x", "[1,2", R"({"model":"m1","model":"m2","max_tokens":1})",
        R"({"model":"m1","max_tokens":1,"messages":[{"source":{"type":"text"},"source":{"type":"url"}}]})",
        "{\"model\":\"m1\",\"max_tokens\":1,\"system\":\"\xff\"}", "\xef\xbb\xbf{}", "{'model':'m1'}"}) {
    BodyVerdict verdict = judge_body(policy(), text);
    EXPECT_EQ(verdict.decision.action, Action::deny) << text;
    EXPECT_EQ(verdict.decision.rule, "json") << text;
    EXPECT_EQ(verdict.decision.status, 400) << text;
  }
  expect_denied("[]", "json", "$", 400);
  std::string deep = body("\"messages\":" + std::string(100, '[') + std::string(100, ']'));
  EXPECT_EQ(judge_body(policy(), deep).decision.rule, "json");
}

// A key written with escapes is the same key.
TEST(BodyPolicy, EscapesHideNothing) {
  expect_denied(body(R"("mcp\u005fservers":[])"), "mcp_servers", "$.mcp_servers");
  expect_denied(body(R"("messages":[{"content":[{"type":"image","sourc\u0065":{"type":"\u0075rl"}}]}])"),
                "content source", "$.messages[0].content[0].source.type");
}

// A budget that the lowered ceiling cannot hold would be the vendor's 400.
TEST(BodyPolicy, ThinkingFitsIntoTheLoweredCeiling) {
  const std::string asked =
      R"({"model":"m1","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":32000}})";
  GatewayPolicy roomy = policy();
  roomy.max_tokens = 8000;
  BodyVerdict lowered = judge_body(roomy, asked);
  EXPECT_EQ(lowered.body,
            R"({"model":"m1","max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":7999}})");
  EXPECT_TRUE(lowered.max_tokens_lowered);
  roomy.max_tokens = 40000;
  EXPECT_NE(judge_body(roomy, asked).body.find("\"budget_tokens\":32000"), std::string::npos);
  expect_denied(asked, "thinking budget", "$.thinking.budget_tokens");  // 1000: less than any budget
}

// "name[1m]" is a name of the CLI's; the vendor is asked for "name".
TEST(BodyPolicy, TheMillionTokenContextIsTheSameModel) {
  GatewayPolicy million = policy();
  million.models = {"m1[1m]"};
  EXPECT_EQ(judge_body(million, body("")).decision.action, Action::relay);
  EXPECT_EQ(judge_body(million, R"({"model":"m1[1m]","max_tokens":1})").decision.action, Action::relay);
  EXPECT_EQ(judge_body(million, R"({"model":"m","max_tokens":1})").decision.rule, "model");
}

}  // namespace
}  // namespace cofferdam::egress
