// The stand-in's form of OpenAI's Responses API. That the real CLI understands it is for the end-to-end
// tests.
#include "openai.h"

#include <gtest/gtest.h>

#include "exchange.h"
#include "openai_items.h"

namespace cofferdam::standin {
namespace {

Script script_of(const std::string& json) {
  auto script = parse_script(json);
  EXPECT_TRUE(script) << script.error().line();
  return script ? *script : Script{};
}

std::string turn_body(bool stream = true) {
  return R"({"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}],)"
         R"("stream":)" +
         std::string(stream ? "true}" : "false}");
}

Kept ask(const std::string& script, const std::string& body = turn_body()) {
  KeptExchange exchange;
  EXPECT_TRUE(make_openai_api(script_of(script), "", nullptr)
                  ->handle(make_request("POST", "/v1/responses", "k", body), exchange));
  return exchange;
}

TEST(OpenAi, AStreamedTurn) {
  Kept exchange = ask(
      R"({"turns":[{"blocks":[{"text":"hello there, this is more than one piece"}],"usage":{"input_tokens":7,"output_tokens":3},)"
      R"("expect":{"last_message_contains":"go"}}]})");
  EXPECT_EQ(exchange.status, 200U);
  EXPECT_TRUE(exchange.ended);
  EXPECT_EQ(exchange.notes["expect"]["ok"], true);
  std::string text;
  std::uint64_t sequence = 0;
  const std::vector<Json> events = exchange.events();
  for (const Json& event : events) {
    EXPECT_EQ(event["sequence_number"], sequence++);
    if (event["type"] == "response.output_text.delta") text += event["delta"].get<std::string>();
  }
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(text, "hello there, this is more than one piece");
  EXPECT_EQ(events.back()["type"], "response.completed");
  EXPECT_EQ(events.back()["response"]["usage"]["input_tokens"], 7);
  EXPECT_EQ(events.back()["response"]["output"][0]["content"][0]["text"], text);
}

TEST(OpenAi, InOnePiece) {
  Kept exchange =
      ask(R"({"turns":[{"blocks":[{"text":"x"}],"stop_reason":"max_tokens"}]})", turn_body(false));
  EXPECT_EQ(exchange.json()["status"], "incomplete");
  EXPECT_EQ(exchange.json()["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(OpenAi, RefusalsHaveTheVendorsShape) {
  auto api = make_openai_api(script_of(R"({"models":["m"],"turns":[]})"), "k", nullptr);
  struct Case {
    Request request;
    unsigned status;
    const char* code;
  };
  Request upgrade = make_request("GET", "/v1/responses", "k");
  upgrade.headers["upgrade"] = "websocket";
  const Case cases[] = {
      {make_request("POST", "/v1/responses", "other", turn_body()), 401, "invalid_api_key"},
      {make_request("POST", "/v1/responses", "k", "{}"), 400, "invalid_request_error"},
      {make_request("POST", "/v1/responses", "k", R"({"model":"other","input":[]})"), 404, "model_not_found"},
      {make_request("POST", "/v1/responses/compact", "k", turn_body()), 404, "not_found"},
      {make_request("GET", "/v1/responses", "k"), 404, "not_found"},
      {upgrade, 426, "upgrade_required"},
  };
  for (const Case& one : cases) {
    KeptExchange exchange;
    EXPECT_TRUE(api->handle(one.request, exchange));
    EXPECT_EQ(exchange.status, one.status);
    EXPECT_EQ(exchange.json()["error"]["code"], one.code);
  }
  KeptExchange exchange;
  EXPECT_FALSE(api->handle(make_request("POST", "/v1/messages", "k"), exchange));
}

TEST(OpenAi, Misfortunes) {
  const std::string words = R"("blocks":[{"text":"some words to begin with"}])";
  EXPECT_TRUE(ask(R"({"turns":[{"stall":"before-headers"}]})").held);
  EXPECT_TRUE(ask(R"({"turns":[{"reset":"before-headers"}]})").was_reset);
  EXPECT_TRUE(ask("{\"turns\":[{" + words + R"(,"stall":"mid-stream"}]})").held);
  EXPECT_TRUE(ask("{\"turns\":[{" + words + R"(,"reset":"mid-stream"}]})").was_reset);
  Kept truncated = ask("{\"turns\":[{" + words + R"(,"truncate":true}]})");
  EXPECT_TRUE(truncated.ended);
  EXPECT_EQ(truncated.events().back()["type"], "response.output_text.delta");
  Kept garbage = ask("{\"turns\":[{" + words + R"(,"garbage":true}]})");
  EXPECT_TRUE(garbage.events().back().is_discarded());
  Kept failed = ask("{\"turns\":[{" + words +
                    R"(,"error":{"type":"server_error","message":"no","at":"mid-stream"}}]})");
  EXPECT_EQ(failed.events().back()["type"], "response.failed");
  EXPECT_EQ(failed.events().back()["response"]["error"]["message"], "no");
  Kept limited = ask(R"({"turns":[{"error":{"status":429,"headers":{"retry-after":"1"}}}]})");
  EXPECT_EQ(limited.status, 429U);
  EXPECT_EQ(limited.headers.back().first, "retry-after");
  EXPECT_GT(ask(R"({"turns":[{"flood_bytes":100000}]})").body.size(), 100000U);
  EXPECT_TRUE(ask(R"({"turns":[{"garbage":"before-headers"}]})").babbled);
}

Block call(const std::string& name, const std::string& input) {
  Block block;
  block.kind = Block::Kind::tool_use;
  block.name = name;
  block.input = input;
  return block;
}

TEST(OpenAi, CallsTakeTheFormOfWhatIsOffered) {
  const auto classic = offered_tools(Json::parse(
      R"({"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"web_search"}]})"));
  ASSERT_EQ(classic.size(), 3U);
  Json item = output_item(call("exec_command", R"({"cmd":"ls"})"), classic);
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["arguments"], R"({"cmd":"ls"})");
  item = output_item(call("apply_patch", R"({"input":"*** Begin"})"), classic);
  EXPECT_EQ(item["type"], "custom_tool_call");
  EXPECT_EQ(item["input"], "*** Begin");

  const auto code_mode = offered_tools(Json::parse(
      R"({"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"},{"type":"function","name":"wait"}]}]}]})"));
  ASSERT_EQ(code_mode.size(), 2U);
  item = output_item(call("exec_command", R"({"cmd":"ls"})"), code_mode);
  EXPECT_EQ(item["type"], "custom_tool_call");
  EXPECT_EQ(item["name"], "exec");
  EXPECT_EQ(item["input"],
            "const result = await tools.exec_command({\"cmd\":\"ls\"});\ntext(result.output ?? result);\n");
  item = output_item(call("apply_patch", R"({"input":"*** \"Begin\""})"), code_mode);
  EXPECT_NE(item["input"].get<std::string>().find(R"(tools.apply_patch("*** \"Begin\""))"),
            std::string::npos);
  item = output_item(call("mcp__box.run_command", R"({"id":"t"})"), code_mode);
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["namespace"], "mcp__box");
  EXPECT_EQ(item["name"], "run_command");
}

}  // namespace
}  // namespace cofferdam::standin
