#include "script.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cofferdam::standin {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxScriptBytes = 16U << 20U;
constexpr std::uint64_t kMaxFloodBytes = 8ULL << 30U;

// Thrown inside this file only: a script is read once at the start, and the first mistake ends it.
struct Malformed {
  std::string what;
};

[[noreturn]] void fail(const std::string& at, const std::string& what) {
  throw Malformed{at + ": " + what};
}

const Json& object(const Json& json, const std::string& at, std::initializer_list<std::string_view> keys) {
  if (!json.is_object()) fail(at, "must be an object");
  for (const auto& item : json.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      fail(at, "unknown key \"" + item.key() + "\"");
  }
  return json;
}

std::string text(const Json& json, const std::string& at) {
  if (!json.is_string()) fail(at, "must be a string");
  return json.get<std::string>();
}

bool boolean(const Json& json, const std::string& at) {
  if (!json.is_boolean()) fail(at, "must be true or false");
  return json.get<bool>();
}

std::uint64_t number(const Json& json, const std::string& at, std::uint64_t max) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > max) {
    fail(at, "must be a whole number up to " + std::to_string(max));
  }
  return json.get<std::uint64_t>();
}

const Json& array(const Json& json, const std::string& at) {
  if (!json.is_array()) fail(at, "must be an array");
  return json;
}

std::string index(const std::string& at, std::size_t i) {
  return at + "[" + std::to_string(i) + "]";
}

std::vector<std::string> texts(const Json& json, const std::string& at) {
  if (json.is_string()) return {json.get<std::string>()};
  std::vector<std::string> out;
  for (const Json& one : array(json, at)) out.push_back(text(one, index(at, out.size())));
  return out;
}

Block read_block(const Json& json, const std::string& at) {
  object(json, at, {"text", "thinking", "tool_use"});
  if (json.size() != 1) fail(at, "must have exactly one of text, thinking and tool_use");
  Block block;
  if (json.contains("text")) {
    block.text = text(json["text"], at + ".text");
  } else if (json.contains("thinking")) {
    block.kind = Block::Kind::thinking;
    block.text = text(json["thinking"], at + ".thinking");
  } else {
    const Json& tool = object(json["tool_use"], at + ".tool_use", {"name", "input"});
    if (!tool.contains("name") || !tool.contains("input")) fail(at + ".tool_use", "needs name and input");
    if (!tool["input"].is_object()) fail(at + ".tool_use.input", "must be an object");
    block.kind = Block::Kind::tool_use;
    block.name = text(tool["name"], at + ".tool_use.name");
    block.input = tool["input"].dump();
  }
  return block;
}

Point read_point(const Json& json, const std::string& at) {
  std::string name = text(json, at);
  if (name == "before-headers") return Point::before_headers;
  if (name == "mid-stream") return Point::mid_stream;
  fail(at, "must be \"before-headers\" or \"mid-stream\"");
}

Point read_garbage(const Json& json, const std::string& at) {
  if (json.is_string()) return read_point(json, at);
  return boolean(json, at) ? Point::mid_stream : Point::never;
}

ScriptedError read_error(const Json& json, const std::string& at) {
  object(json, at, {"status", "type", "message", "headers", "at"});
  ScriptedError error;
  if (json.contains("status"))
    error.status = static_cast<unsigned>(number(json["status"], at + ".status", 599));
  if (error.status < 400) fail(at + ".status", "must be 400 to 599");
  if (json.contains("type")) error.type = text(json["type"], at + ".type");
  if (json.contains("message")) error.message = text(json["message"], at + ".message");
  if (json.contains("at")) error.mid_stream = read_point(json["at"], at + ".at") == Point::mid_stream;
  if (!json.contains("headers")) return error;
  if (!json["headers"].is_object()) fail(at + ".headers", "must be an object");
  for (const auto& item : json["headers"].items()) {
    error.headers.emplace_back(item.key(), text(item.value(), at + ".headers." + item.key()));
  }
  return error;
}

Expect read_expect(const Json& json, const std::string& at) {
  object(json, at, {"last_message_contains", "system_contains", "model", "tools", "headers"});
  Expect expect;
  if (json.contains("last_message_contains")) {
    expect.last_message_contains = texts(json["last_message_contains"], at + ".last_message_contains");
  }
  if (json.contains("system_contains")) {
    expect.system_contains = texts(json["system_contains"], at + ".system_contains");
  }
  if (json.contains("model")) expect.model = text(json["model"], at + ".model");
  if (json.contains("tools")) expect.tools = texts(json["tools"], at + ".tools");
  if (!json.contains("headers")) return expect;
  if (!json["headers"].is_object()) fail(at + ".headers", "must be an object");
  for (const auto& item : json["headers"].items()) {
    std::optional<std::string> value;
    if (!item.value().is_null()) value = text(item.value(), at + ".headers." + item.key());
    expect.headers[item.key()] = value;
  }
  return expect;
}

void read_behaviour(const Json& json, const std::string& at, Turn* turn) {
  if (json.contains("error")) turn->error = read_error(json["error"], at + ".error");
  if (json.contains("stall")) turn->stall = read_point(json["stall"], at + ".stall");
  if (json.contains("reset")) turn->reset = read_point(json["reset"], at + ".reset");
  if (json.contains("flood_bytes")) {
    turn->flood_bytes = number(json["flood_bytes"], at + ".flood_bytes", kMaxFloodBytes);
  }
  if (json.contains("garbage")) turn->garbage = read_garbage(json["garbage"], at + ".garbage");
  if (json.contains("truncate")) turn->truncate = boolean(json["truncate"], at + ".truncate");
  if (json.contains("slow_ms_per_chunk")) {
    turn->pace =
        std::chrono::milliseconds(number(json["slow_ms_per_chunk"], at + ".slow_ms_per_chunk", 60'000));
  }
}

Turn read_turn(const Json& json, const std::string& at) {
  object(json, at,
         {"blocks", "stop_reason", "usage", "error", "stall", "reset", "flood_bytes", "garbage", "truncate",
          "slow_ms_per_chunk", "expect"});
  Turn turn;
  if (json.contains("blocks")) {
    for (const Json& one : array(json["blocks"], at + ".blocks")) {
      turn.blocks.push_back(read_block(one, index(at + ".blocks", turn.blocks.size())));
    }
  } else {
    turn.blocks = final_turn().blocks;
  }
  const bool calls = std::any_of(turn.blocks.begin(), turn.blocks.end(),
                                 [](const Block& block) { return block.kind == Block::Kind::tool_use; });
  turn.stop_reason = calls ? "tool_use" : "end_turn";
  if (json.contains("stop_reason")) turn.stop_reason = text(json["stop_reason"], at + ".stop_reason");
  if (json.contains("usage")) {
    const Json& usage = object(json["usage"], at + ".usage", {"input_tokens", "output_tokens"});
    constexpr std::uint64_t kMaxTokens = 1'000'000'000;
    turn.usage =
        Usage{number(usage.value("input_tokens", Json(0U)), at + ".usage.input_tokens", kMaxTokens),
              number(usage.value("output_tokens", Json(0U)), at + ".usage.output_tokens", kMaxTokens)};
  }
  if (json.contains("expect")) turn.expect = read_expect(json["expect"], at + ".expect");
  read_behaviour(json, at, &turn);
  return turn;
}

OAuthScript read_oauth(const Json& json) {
  const std::string at = "$.oauth";
  object(json, at, {"refresh_token", "access_token", "account_id", "expires_in", "delay_ms"});
  if (!json.contains("refresh_token")) fail(at, "needs refresh_token");
  OAuthScript oauth;
  oauth.refresh_token = text(json["refresh_token"], at + ".refresh_token");
  if (json.contains("access_token")) oauth.access_token = text(json["access_token"], at + ".access_token");
  if (json.contains("account_id")) oauth.account_id = text(json["account_id"], at + ".account_id");
  if (json.contains("expires_in")) {
    oauth.expires_in = std::chrono::seconds(number(json["expires_in"], at + ".expires_in", 31'536'000));
  }
  if (json.contains("delay_ms")) {
    oauth.delay = std::chrono::milliseconds(number(json["delay_ms"], at + ".delay_ms", 60'000));
  }
  return oauth;
}

}  // namespace

Turn final_turn() {
  Turn turn;
  Block block;
  block.text = "The script has no further turn.";
  turn.blocks.push_back(block);
  turn.stop_reason = "end_turn";
  return turn;
}

Result<Script> parse_script(std::string_view json) {
  Json document = Json::parse(json, nullptr, false);
  if (document.is_discarded()) return make_error(Code::usage, "the script is not JSON");
  try {
    object(document, "$", {"models", "turns", "oauth"});
    Script script;
    if (document.contains("models")) script.models = texts(document["models"], "$.models");
    if (!document.contains("turns")) fail("$", "needs turns");
    for (const Json& one : array(document["turns"], "$.turns")) {
      script.turns.push_back(read_turn(one, index("$.turns", script.turns.size())));
    }
    if (document.contains("oauth")) script.oauth = read_oauth(document["oauth"]);
    return script;
  } catch (const Malformed& malformed) {
    return make_error(Code::usage, malformed.what);
  }
}

Result<Script> load_script(const std::string& path) {
  TRY(std::string bytes, read_file(path, kMaxScriptBytes));
  Result<Script> script = parse_script(bytes);
  if (!script) return script.error().with(path);
  return script;
}

}  // namespace cofferdam::standin
