#include "openai.h"

#include <algorithm>
#include <mutex>

#include "answer.h"
#include "base/clock.h"
#include "base/text.h"
#include "openai_items.h"

namespace cofferdam::standin {
namespace {

std::string request_id() {
  return "req_" + random_hex(16);
}

bool respond_error(Exchange& exchange, const ScriptedError& error, const std::string& code = {}) {
  const Json body = {{"error",
                      {{"message", error.message},
                       {"type", error.type},
                       {"param", nullptr},
                       {"code", code.empty() ? Json(error.type) : Json(code)}}}};
  Headers headers = {{"content-type", "application/json"}, {"x-request-id", request_id()}};
  headers.insert(headers.end(), error.headers.begin(), error.headers.end());
  return exchange.respond(error.status, headers, dump(body));
}

// All text of an input item: of a message its content, of a tool's output what the tool said.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  if (value.is_array()) {
    for (const Json& part : value) out += text_of(part) + "\n";
  } else if (value.is_object()) {
    for (const char* key : {"text", "content", "output"}) {
      if (value.contains(key)) out += text_of(value[key]);
    }
  }
  return out;
}

std::string system_text(const Json& body) {
  std::string out = text_of(body.value("instructions", Json()));
  for (const Json& item : body["input"]) {
    const Json role = item.is_object() ? item.value("role", Json()) : Json();
    if (role == "developer" || role == "system") out += text_of(item) + "\n";
  }
  return out;
}

Json check_expect(const Expect& expect, const Request& request, const Json& body) {
  Json mismatches = Json::array();
  const Json& input = body["input"];
  expect_texts("the last message", input.empty() ? "" : text_of(input.back()), expect.last_message_contains,
               &mismatches);
  expect_texts("the system prompt", system_text(body), expect.system_contains, &mismatches);
  const std::string model = text_of(body["model"]);
  if (expect.model && *expect.model != model) mismatches.push_back("the model is \"" + model + "\"");
  std::vector<std::string> names;
  for (const OfferedTool& tool : offered_tools(body)) names.push_back(tool.name);
  expect_tools(expect, std::move(names), &mismatches);
  expect_headers(expect, request, &mismatches);
  return {{"ok", mismatches.empty()}, {"mismatches", mismatches}};
}

Json usage_json(const Usage& usage) {
  return {{"input_tokens", usage.input_tokens},
          {"input_tokens_details", {{"cached_tokens", 0}}},
          {"output_tokens", usage.output_tokens},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", usage.input_tokens + usage.output_tokens}};
}

// One answer of the model, written to the exchange as server-sent events.
class EventWriter {
 public:
  EventWriter(Exchange& exchange, const Turn& turn, Json response)
      : exchange_(exchange), turn_(turn), response_(std::move(response)) {}

  // False when the client is gone or the script wants the answer broken off here.
  bool write(const char* type, Json data) {
    data["type"] = type;
    data["sequence_number"] = sequence_++;
    return write_raw(std::string("event: ") + type + "\ndata: " + dump(data) + "\n\n");
  }

  bool begin() {
    Json started = response_;
    started["status"] = "in_progress";
    started["output"] = Json::array();
    started["usage"] = nullptr;
    started["incomplete_details"] = nullptr;
    return write("response.created", {{"response", started}}) &&
           write("response.in_progress", {{"response", started}});
  }

  bool item(std::size_t index, const Json& item) {
    at_ = {{"output_index", index}, {"item_id", item["id"]}};
    const std::string type = item["type"];
    Json started = item;
    if (started.contains("status")) started["status"] = "in_progress";
    for (const char* key : {"content", "summary"}) {
      if (started.contains(key)) started[key] = Json::array();
    }
    for (const char* key : {"arguments", "input"}) {
      if (started.contains(key)) started[key] = "";
    }
    return write("response.output_item.added", {{"output_index", index}, {"item", started}}) &&
           body_of(type, item) &&
           write("response.output_item.done", {{"output_index", index}, {"item", item}});
  }

  // Its text is in the deltas only: nobody has to hold it whole.
  bool flood(std::size_t index) {
    const std::string id = "msg_" + random_hex(12);
    at_ = {{"output_index", index}, {"item_id", id}, {"content_index", 0}};
    Json item = {{"type", "message"}, {"id", id}, {"role", "assistant"}, {"content", Json::array()}};
    if (!write("response.output_item.added", {{"output_index", index}, {"item", item}})) return false;
    for (std::uint64_t left = turn_.flood_bytes; left > 0;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, kFloodBytes));
      if (!delta("response.output_text.delta", std::string(size, 'x'))) return false;
      left -= size;
    }
    return write("response.output_item.done", {{"output_index", index}, {"item", item}});
  }

  bool finish() {
    const std::string status = response_["status"];
    const char* type = status == "completed" ? "response.completed" : "response.incomplete";
    return write(type, {{"response", response_}});
  }

 private:
  bool write_raw(std::string_view bytes) { return exchange_.pace(turn_.pace) && exchange_.chunk(bytes); }

  bool placed(const char* type, const Json& more) {
    Json data = at_;
    data.update(more);
    return write(type, std::move(data));
  }

  bool body_of(const std::string& type, const Json& item) {
    if (type == "message") {
      const Json& part = item["content"][0];
      at_["content_index"] = 0;
      Json empty = part;
      empty["text"] = "";
      return placed("response.content_part.added", {{"part", empty}}) &&
             deltas("response.output_text.delta", part["text"]) &&
             placed("response.output_text.done", {{"text", part["text"]}}) &&
             placed("response.content_part.done", {{"part", part}});
    }
    if (type == "reasoning") {
      const Json& part = item["summary"][0];
      at_["summary_index"] = 0;
      Json empty = part;
      empty["text"] = "";
      return placed("response.reasoning_summary_part.added", {{"part", empty}}) &&
             deltas("response.reasoning_summary_text.delta", part["text"]) &&
             placed("response.reasoning_summary_text.done", {{"text", part["text"]}}) &&
             placed("response.reasoning_summary_part.done", {{"part", part}});
    }
    if (type == "custom_tool_call") {
      return deltas("response.custom_tool_call_input.delta", item["input"]) &&
             placed("response.custom_tool_call_input.done", {{"input", item["input"]}});
    }
    return deltas("response.function_call_arguments.delta", item["arguments"]) &&
           placed("response.function_call_arguments.done", {{"arguments", item["arguments"]}});
  }

  bool deltas(const char* type, const std::string& text) {
    const std::vector<std::string> pieces = delta_pieces(text);
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const std::string& piece) { return delta(type, piece); });
  }

  bool delta(const char* type, const std::string& piece) {
    if (!placed(type, {{"delta", piece}})) return false;
    if (!misfortune_strikes(exchange_, turn_)) return true;
    if (turn_.error) {
      Json failed = response_;
      failed["status"] = "failed";
      failed["output"] = Json::array();
      failed["usage"] = nullptr;
      failed["error"] = {{"code", turn_.error->type}, {"message", turn_.error->message}};
      write("response.failed", {{"response", failed}});
    } else if (turn_.garbage == Point::mid_stream) {
      write_raw(
          "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\n\n");
      write_raw("\xff\xfe\x01 this is no event\n\n");
    }
    exchange_.end();
    return false;
  }

  Exchange& exchange_;
  const Turn& turn_;
  const Json response_;
  Json at_;
  std::uint64_t sequence_ = 0;
};

bool is_responses_path(std::string_view path) {
  return path == "/v1/responses" || path == "/backend-api/codex/responses";
}

class OpenAiApi final : public VendorApi {
 public:
  OpenAiApi(Script script, std::string expected_key, const TokenBook* tokens)
      : script_(std::move(script)), expected_key_(std::move(expected_key)), tokens_(tokens) {}

  bool handle(const Request& request, Exchange& exchange) override {
    const std::string_view path = request.path();
    // Another vendor has a list of models at the same place, and asks with another header.
    const bool models = path == "/v1/models" && request.header("x-api-key").empty();
    if (!models && !is_responses_path(path) && !starts_with(path, "/v1/responses/")) return false;
    if (!authorised(request)) {
      return refuse(exchange, 401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key");
    }
    if (models && request.method == "GET") return list_models(exchange);
    if (request.method == "GET" && !request.header("upgrade").empty()) {
      return refuse(exchange, 426, "invalid_request_error", "No WebSocket here.", "upgrade_required");
    }
    if (request.method != "POST" || !is_responses_path(path)) {
      return refuse(exchange, 404, "invalid_request_error", "Invalid URL", "not_found");
    }
    return respond(request, exchange);
  }

 private:
  bool authorised(const Request& request) const {
    if (expected_key_.empty()) return true;
    const std::string_view bearer = bearer_of(request);
    return bearer == expected_key_ || (tokens_ != nullptr && tokens_->accepts(bearer));
  }

  static bool refuse(Exchange& exchange, unsigned status, const std::string& type, const std::string& message,
                     const std::string& code) {
    ScriptedError error;
    error.status = status;
    error.type = type;
    error.message = message;
    respond_error(exchange, error, code);
    return true;
  }

  bool list_models(Exchange& exchange) const {
    Json data = Json::array();
    for (const std::string& model : script_.models) {
      data.push_back({{"id", model}, {"object", "model"}, {"created", 0}, {"owned_by", "stand-in"}});
    }
    exchange.respond(200, {{"content-type", "application/json"}}, dump({{"object", "list"}, {"data", data}}));
    return true;
  }

  bool respond(const Request& request, Exchange& exchange) {
    const Json body = Json::parse(request.body, nullptr, false);
    if (!body.is_object() || !body.contains("model") || !body["model"].is_string() ||
        !body.contains("input") || !body["input"].is_array()) {
      return refuse(exchange, 400, "invalid_request_error", "the body needs model and input",
                    "invalid_request_error");
    }
    const std::string model = body["model"];
    if (!script_.models.empty() &&
        std::find(script_.models.begin(), script_.models.end(), model) == script_.models.end()) {
      return refuse(exchange, 404, "invalid_request_error",
                    "The model `" + model + "` does not exist or you do not have access to it.",
                    "model_not_found");
    }
    answer(next_turn(exchange), request, body, exchange);
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
    const Json response = make_response(turn, request, body);
    if (streamed) {
      stream(turn, response, exchange);
    } else {
      respond_whole(turn, response, exchange);
    }
  }

  static Json make_response(const Turn& turn, const Request& request, const Json& body) {
    Json output = Json::array();
    const std::vector<OfferedTool> offered = offered_tools(body);
    for (const Block& block : turn.blocks) output.push_back(output_item(block, offered));
    // The other vendor's reasons mean the same here; what is neither of them ends a response well.
    const bool cut = turn.stop_reason == "max_tokens" || turn.stop_reason == "max_output_tokens";
    const bool filtered = turn.stop_reason == "refusal" || turn.stop_reason == "content_filter";
    Json details;
    if (cut || filtered) details = {{"reason", cut ? "max_output_tokens" : "content_filter"}};
    return {{"id", "resp_" + random_hex(16)},
            {"object", "response"},
            {"created_at", now().ms / 1000},
            {"status", cut || filtered ? "incomplete" : "completed"},
            {"model", body["model"]},
            {"output", output},
            {"error", nullptr},
            {"incomplete_details", details},
            {"usage", usage_json(usage_of(turn, request))}};
  }

  static void stream(const Turn& turn, const Json& response, Exchange& exchange) {
    const Headers headers = {
        {"content-type", kEventStream}, {"cache-control", "no-cache"}, {"x-request-id", request_id()}};
    if (!exchange.begin(200, headers)) return;
    EventWriter events(exchange, turn, response);
    bool going = events.begin();
    std::size_t index = 0;
    for (const Json& item : response["output"]) going = going && events.item(index++, item);
    if (turn.flood_bytes > 0) going = going && events.flood(index);
    if (going && events.finish()) exchange.end();
  }

  static void respond_whole(const Turn& turn, const Json& response, Exchange& exchange) {
    const Headers headers = {{"content-type", "application/json"}, {"x-request-id", request_id()}};
    std::string bytes = dump(response);
    if (turn.garbage == Point::mid_stream || turn.truncate) bytes.resize(bytes.size() / 2);
    const bool broken_off = turn.stall == Point::mid_stream || turn.reset == Point::mid_stream;
    if (!broken_off) {
      exchange.respond(200, headers, bytes);
      return;
    }
    if (!exchange.begin(200, headers) || !exchange.chunk(std::string_view(bytes).substr(0, bytes.size() / 2)))
      return;
    misfortune_strikes(exchange, turn);
  }

  const Script script_;
  const std::string expected_key_;
  const TokenBook* const tokens_;
  std::mutex mutex_;
  std::size_t next_ = 0;  // under mutex_
};

}  // namespace

std::unique_ptr<VendorApi> make_openai_api(Script script, std::string expected_key, const TokenBook* tokens) {
  return std::make_unique<OpenAiApi>(std::move(script), std::move(expected_key), tokens);
}

}  // namespace cofferdam::standin
