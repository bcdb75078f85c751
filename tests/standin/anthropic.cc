#include "anthropic.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "base/text.h"

namespace cofferdam::standin {
namespace {

std::string request_id() {
  return "req_" + random_hex(12);
}

bool respond_error(Exchange& exchange, const ScriptedError& error) {
  const std::string id = request_id();
  Json body = {
      {"type", "error"}, {"error", {{"type", error.type}, {"message", error.message}}}, {"request_id", id}};
  Headers headers = {{"content-type", "application/json"}, {"request-id", id}};
  headers.insert(headers.end(), error.headers.begin(), error.headers.end());
  return exchange.respond(error.status, headers, dump(body));
}

// All text of a system prompt or a message's content, tool results included.
std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_array()) {
    std::string out;
    for (const Json& part : content) out += text_of(part) + "\n";
    return out;
  }
  if (!content.is_object()) return {};
  std::string out;
  for (const char* key : {"text", "content"}) {
    if (content.contains(key)) out += text_of(content[key]);
  }
  return out;
}

Json check_expect(const Expect& expect, const Request& request, const Json& body) {
  Json mismatches = Json::array();
  const Json& messages = body["messages"];
  expect_texts("the last message", messages.empty() ? "" : text_of(messages.back()),
               expect.last_message_contains, &mismatches);
  expect_texts("the system prompt", text_of(body.value("system", Json())), expect.system_contains,
               &mismatches);
  const std::string model = text_of(body["model"]);
  if (expect.model && *expect.model != model) mismatches.push_back("the model is \"" + model + "\"");
  std::vector<std::string> names;
  for (const Json& tool : body.value("tools", Json::array()))
    names.push_back(text_of(tool.value("name", Json())));
  expect_tools(expect, std::move(names), &mismatches);
  expect_headers(expect, request, &mismatches);
  return {{"ok", mismatches.empty()}, {"mismatches", mismatches}};
}

Json content_block(const Block& block) {
  switch (block.kind) {
    case Block::Kind::text:
      return {{"type", "text"}, {"text", block.text}};
    case Block::Kind::thinking:
      return {{"type", "thinking"}, {"thinking", block.text}, {"signature", "c3RhbmQtaW4="}};
    case Block::Kind::tool_use:
      break;
  }
  return {{"type", "tool_use"},
          {"id", "toolu_" + random_hex(12)},
          {"name", block.name},
          {"input", Json::parse(block.input)}};
}

// One answer of the model, written to the exchange as server-sent events.
class EventWriter {
 public:
  EventWriter(Exchange& exchange, const Turn& turn) : exchange_(exchange), turn_(turn) {}

  // False when the client is gone or the script wants the answer broken off here.
  bool write(const std::string& name, const Json& data) {
    return write_raw("event: " + name + "\ndata: " + dump(data) + "\n\n");
  }

  bool write_raw(std::string_view bytes) { return exchange_.pace(turn_.pace) && exchange_.chunk(bytes); }

  bool block(std::size_t index, const Json& block) {
    const std::string type = block["type"];
    if (type == "tool_use") {
      Json start = block;
      start["input"] = Json::object();
      return start_block(index, start) &&
             deltas(index, "input_json_delta", "partial_json", dump(block["input"])) && stop_block(index);
    }
    if (type == "thinking") {
      Json start = {{"type", type}, {"thinking", ""}, {"signature", ""}};
      Json signature = {{"type", "signature_delta"}, {"signature", block["signature"]}};
      return start_block(index, start) && deltas(index, "thinking_delta", "thinking", block["thinking"]) &&
             delta(index, signature) && stop_block(index);
    }
    Json start = {{"type", type}, {"text", ""}};
    return start_block(index, start) && deltas(index, "text_delta", "text", block["text"]) &&
           stop_block(index);
  }

  bool flood(std::size_t index) {
    if (!start_block(index, {{"type", "text"}, {"text", ""}})) return false;
    for (std::uint64_t left = turn_.flood_bytes; left > 0;) {
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left, kFloodBytes));
      if (!delta(index, {{"type", "text_delta"}, {"text", std::string(size, 'x')}})) return false;
      left -= size;
    }
    return stop_block(index);
  }

 private:
  bool start_block(std::size_t index, const Json& block) {
    return write("content_block_start",
                 {{"type", "content_block_start"}, {"index", index}, {"content_block", block}});
  }
  bool stop_block(std::size_t index) {
    return write("content_block_stop", {{"type", "content_block_stop"}, {"index", index}});
  }

  bool delta(std::size_t index, const Json& delta) {
    if (!write("content_block_delta",
               {{"type", "content_block_delta"}, {"index", index}, {"delta", delta}})) {
      return false;
    }
    return go_on();
  }

  bool go_on() {
    if (!misfortune_strikes(exchange_, turn_)) return true;
    if (turn_.error) {
      write("error",
            {{"type", "error"}, {"error", {{"type", turn_.error->type}, {"message", turn_.error->message}}}});
    } else if (turn_.garbage == Point::mid_stream) {
      write_raw("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":\n\n");
      write_raw("\xff\xfe\x01 this is no event\n\n");
    }
    exchange_.end();
    return false;
  }

  bool deltas(std::size_t index, const std::string& type, const std::string& key, const std::string& text) {
    for (const std::string& piece : delta_pieces(text)) {
      if (!delta(index, {{"type", type}, {key, piece}})) return false;
    }
    return true;
  }

  Exchange& exchange_;
  const Turn& turn_;
};

class AnthropicApi final : public VendorApi {
 public:
  AnthropicApi(Script script, std::string expected_key, const TokenBook* tokens)
      : script_(std::move(script)), expected_key_(std::move(expected_key)), tokens_(tokens) {}

  bool handle(const Request& request, Exchange& exchange) override {
    const std::string_view path = request.path();
    if (path == "/" && request.method == "HEAD") {  // the CLI asks before its first turn
      exchange.respond(200, {}, "");
      return true;
    }
    if (!starts_with(path, "/v1/")) return false;
    if (!authorised(request)) {
      return refuse(exchange, 401, "authentication_error", "invalid x-api-key");
    }
    const bool counting = path == "/v1/messages/count_tokens";
    if (request.method != "POST" || (path != "/v1/messages" && !counting)) {
      return refuse(exchange, 404, "not_found_error", "Not found");
    }
    Json body = Json::parse(request.body, nullptr, false);
    if (!body.is_object() || !body.contains("model") || !body["model"].is_string() ||
        !body.contains("messages") || !body["messages"].is_array()) {
      return refuse(exchange, 400, "invalid_request_error", "the body needs model and messages");
    }
    const std::string model = body["model"];
    if (!script_.models.empty() &&
        std::find(script_.models.begin(), script_.models.end(), model) == script_.models.end()) {
      return refuse(exchange, 404, "not_found_error", "model: " + model);
    }
    if (counting) {
      Json answer = {{"input_tokens", estimate_tokens(request.body.size())}};
      exchange.respond(200, {{"content-type", "application/json"}, {"request-id", request_id()}},
                       dump(answer));
      return true;
    }
    answer(next_turn(exchange), request, body, exchange);
    return true;
  }

 private:
  // A key by itself; a login as a bearer, and only with its beta flag.
  bool authorised(const Request& request) const {
    if (expected_key_.empty() || request.header("x-api-key") == expected_key_) return true;
    if (request.header("anthropic-beta").find("oauth-2025-04-20") == std::string_view::npos) return false;
    const auto bearer = bearer_of(request);
    return bearer == expected_key_ || (tokens_ != nullptr && tokens_->accepts(bearer));
  }

  static bool refuse(Exchange& exchange, unsigned status, const std::string& type,
                     const std::string& message) {
    ScriptedError error;
    error.status = status;
    error.type = type;
    error.message = message;
    respond_error(exchange, error);
    return true;
  }

  Turn next_turn(Exchange& exchange) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ >= script_.turns.size()) {
      exchange.note("turn", "null");
      return final_turn();
    }
    exchange.note("turn", std::to_string(next_));
    return script_.turns[next_++];
  }

  static void answer(const Turn& turn, const Request& request, const Json& body, Exchange& exchange) {
    if (!turn.expect.empty()) exchange.note("expect", dump(check_expect(turn.expect, request, body)));
    if (turn.stall == Point::before_headers) return exchange.hold();
    if (turn.reset == Point::before_headers) return exchange.reset();
    if (turn.garbage == Point::before_headers) return exchange.babble();
    const bool streamed = body.value("stream", Json(false)) == Json(true);
    if (turn.error && !(turn.error->mid_stream && streamed)) {
      respond_error(exchange, *turn.error);
      return;
    }
    Json message = make_message(turn, request, body["model"]);
    if (streamed) {
      stream(turn, message, exchange);
    } else {
      respond_whole(turn, message, exchange);
    }
  }

  static Json make_message(const Turn& turn, const Request& request, const std::string& model) {
    Json content = Json::array();
    for (const Block& block : turn.blocks) content.push_back(content_block(block));
    const Usage usage = usage_of(turn, request);
    return {{"id", "msg_" + random_hex(12)},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model},
            {"content", content},
            {"stop_reason", turn.stop_reason},
            {"stop_sequence", nullptr},
            {"usage",
             {{"input_tokens", usage.input_tokens},
              {"cache_creation_input_tokens", 0},
              {"cache_read_input_tokens", 0},
              {"output_tokens", usage.output_tokens},
              {"service_tier", "standard"}}}};
  }

  static void stream(const Turn& turn, const Json& message, Exchange& exchange) {
    const Headers headers = {
        {"content-type", kEventStream}, {"cache-control", "no-cache"}, {"request-id", request_id()}};
    if (!exchange.begin(200, headers)) return;
    EventWriter events(exchange, turn);
    Json start = message;
    start["content"] = Json::array();
    start["stop_reason"] = nullptr;
    start["usage"]["output_tokens"] = 1;
    bool going = events.write("message_start", {{"type", "message_start"}, {"message", start}}) &&
                 events.write("ping", {{"type", "ping"}});
    std::size_t index = 0;
    for (const Json& block : message["content"]) going = going && events.block(index++, block);
    if (turn.flood_bytes > 0) going = going && events.flood(index);
    Json delta = {{"stop_reason", message["stop_reason"]}, {"stop_sequence", nullptr}};
    Json usage = {{"output_tokens", message["usage"]["output_tokens"]}};
    going = going &&
            events.write("message_delta", {{"type", "message_delta"}, {"delta", delta}, {"usage", usage}}) &&
            events.write("message_stop", {{"type", "message_stop"}});
    if (going) exchange.end();
  }

  static void respond_whole(const Turn& turn, Json message, Exchange& exchange) {
    if (turn.flood_bytes > 0) {
      message["content"].push_back({{"type", "text"}, {"text", std::string(turn.flood_bytes, 'x')}});
    }
    const Headers headers = {{"content-type", "application/json"}, {"request-id", request_id()}};
    std::string bytes = dump(message);
    if (turn.garbage == Point::mid_stream || turn.truncate) bytes.resize(bytes.size() / 2);
    const bool broken_off = turn.stall == Point::mid_stream || turn.reset == Point::mid_stream;
    if (!broken_off) {
      exchange.respond(200, headers, bytes);
      return;
    }
    if (!exchange.begin(200, headers) || !exchange.chunk(std::string_view(bytes).substr(0, bytes.size() / 2)))
      return;
    if (turn.stall == Point::mid_stream) return exchange.hold();
    exchange.reset();
  }

  const Script script_;
  const std::string expected_key_;
  const TokenBook* const tokens_;
  std::mutex mutex_;
  std::size_t next_ = 0;  // under mutex_
};

}  // namespace

std::unique_ptr<VendorApi> make_anthropic_api(Script script, std::string expected_key,
                                              const TokenBook* tokens) {
  return std::make_unique<AnthropicApi>(std::move(script), std::move(expected_key), tokens);
}

}  // namespace cofferdam::standin
