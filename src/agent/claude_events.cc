#include "agent/claude.h"
#include "agent/event_data.h"

namespace cofferdam::agent {
namespace {

using contract::Json;
using contract::json_count;
using contract::json_text;

constexpr std::size_t kMaxNames = 64;

// The text of a tool's result: a string, or blocks of which the textual ones count.
std::string content_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array()) return out;
  for (const Json& block : content) {
    if (out.size() > kMaxTextBytes) break;
    out += text_member(block, "text");
  }
  return out;
}

AgentEvent started(const Json& message) {
  Json data = Json::object();
  put_name(&data, "model", message, "model");
  put_name(&data, "version", message, "claude_code_version");
  put_name(&data, "permission_mode", message, "permissionMode");
  put_name(&data, "session", message, "session_id");
  Json tools = Json::array();
  const Json& offered = member(message, "tools");
  for (std::size_t i = 0; offered.is_array() && i < offered.size() && i < kMaxNames; ++i) {
    if (offered[i].is_string()) tools.push_back(json_text(offered[i].get<std::string>(), kMaxNameBytes));
  }
  data["tools"] = std::move(tools);
  return make_event("started", data);
}

AgentEvent retry(const Json& message) {
  Json data = Json::object();
  data["attempt"] = json_count(count_member(message, "attempt"));
  data["max_retries"] = json_count(count_member(message, "max_retries"));
  const std::uint64_t status = count_member(message, "error_status");
  data["status"] = status == 0 ? Json() : json_count(status);
  put_name(&data, "error", message, "error");
  return make_event("retry", data);
}

std::vector<AgentEvent> system_events(const Json& message) {
  const std::string subtype = text_member(message, "subtype");
  if (subtype == "init") {
    std::vector<AgentEvent> events = {started(message)};
    const std::string version = text_member(message, "claude_code_version");
    if (version != kClaudeVersion) {
      events.push_back(
          warning("the agent names itself version \"" + version + "\", pinned is " + kClaudeVersion));
    }
    return events;
  }
  if (subtype == "api_retry") return {retry(message)};
  if (subtype == "model_refusal_no_fallback") return {warning("the model refused")};
  return {};
}

std::vector<AgentEvent> block_events(const Json& block) {
  const std::string type = text_member(block, "type");
  Json data = Json::object();
  if (type == "text") {
    put_text(&data, "text", text_member(block, "text"));
    return {make_event("message", data)};
  }
  if (type == "thinking") {
    put_text(&data, "text", text_member(block, "thinking"));
    return {make_event("reasoning", data)};
  }
  if (type == "tool_use") {
    put_name(&data, "id", block, "id");
    put_name(&data, "name", block, "name");
    put_input(&data, member(block, "input"));
    return {make_event("tool-call", data)};
  }
  if (type == "tool_result") {
    put_name(&data, "id", block, "tool_use_id");
    data["is_error"] = member(block, "is_error") == Json(true);
    put_text(&data, "text", content_text(member(block, "content")));
    return {make_event("tool-result", data)};
  }
  return {};
}

// What the CLI reports as an error carries a name beside the text.
AgentEvent error_event(const Json& message) {
  Json data = Json::object();
  put_name(&data, "error", message, "error");
  put_text(&data, "text", content_text(member(member(message, "message"), "content")));
  return make_event("error", data);
}

std::vector<AgentEvent> message_events(const Json& message, bool from_agent) {
  if (from_agent && member(message, "error").is_string()) return {error_event(message)};
  std::vector<AgentEvent> events;
  const Json& content = member(member(message, "message"), "content");
  if (!content.is_array()) return events;
  for (std::size_t i = 0; i < content.size() && i < kMaxBlocks; ++i) {
    // Only tools speak in the user's place; its text blocks are the CLI's own notes.
    if (!from_agent && text_member(content[i], "type") != "tool_result") continue;
    for (AgentEvent& event : block_events(content[i])) events.push_back(std::move(event));
  }
  return events;
}

AgentEvent usage(const Json& message) {
  const Json& usage = member(message, "usage");
  Json data = Json::object();
  for (const char* key :
       {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}) {
    data[key] = json_count(count_member(usage, key));
  }
  data["turns"] = json_count(count_member(message, "num_turns"));
  const Json& cost = member(message, "total_cost_usd");
  data["cost_usd"] = cost.is_number() ? cost : Json();
  return make_event("usage", data);
}

std::vector<AgentEvent> result_events(const Json& message) {
  std::vector<AgentEvent> events = {usage(message)};
  const Json& denials = member(message, "permission_denials");
  if (denials.is_array() && !denials.empty()) {
    std::string text = "denied tool calls:";
    for (std::size_t i = 0; i < denials.size() && i < kMaxNames; ++i) {
      text += " " + text_member(denials[i], "tool_name").substr(0, kMaxNameBytes);
    }
    events.push_back(warning(text));
  }
  const bool failed =
      member(message, "is_error") != Json(false) || text_member(message, "subtype") != "success";
  Json data = Json::object();
  put_name(&data, "subtype", message, "subtype");
  put_text(&data, "text", text_member(message, "result"));
  events.push_back(make_event(failed ? "error" : "answer", data));
  return events;
}

}  // namespace

std::vector<AgentEvent> claude_events(const Json& message) {
  const std::string type = text_member(message, "type");
  if (type == "system") return system_events(message);
  if (type == "assistant") return message_events(message, true);
  if (type == "user") return message_events(message, false);
  if (type == "rate_limit_event") return {warning("the vendor reports a rate limit")};
  if (type == "result") return result_events(message);
  return {};
}

}  // namespace cofferdam::agent
