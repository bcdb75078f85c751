#include "agent/codex.h"
#include "agent/event_data.h"

namespace cofferdam::agent {
namespace {

using contract::Json;
using contract::json_count;

AgentEvent text_event(const char* kind, const std::string& text) {
  Json data = Json::object();
  put_text(&data, "text", text);
  return make_event(kind, data);
}

// What a tool was asked to do: the members of its item that are neither a result nor about the item itself.
Json call_input(const Json& item) {
  Json input = Json::object();
  for (const char* key : {"command", "changes", "server", "tool", "arguments", "prompt", "query", "items"}) {
    const Json& value = member(item, key);
    if (!value.is_null()) input[key] = value;
  }
  return input;
}

AgentEvent tool_call(const Json& item) {
  Json data = Json::object();
  put_name(&data, "id", item, "id");
  put_name(&data, "name", item, "type");
  put_input(&data, call_input(item));
  return make_event("tool-call", data);
}

// A command leaves its output, a tool of a server a result or an error, a change of files nothing.
std::string result_text(const Json& item) {
  std::string text = text_member(item, "aggregated_output");
  if (!text.empty()) return text;
  for (const char* key : {"error", "result"}) {
    const Json& value = member(item, key);
    if (!value.is_null()) return contract::canonical(value);
  }
  return {};
}

AgentEvent tool_result(const Json& item) {
  Json data = Json::object();
  put_name(&data, "id", item, "id");
  data["is_error"] = text_member(item, "status") != "completed";
  put_text(&data, "text", result_text(item));
  return make_event("tool-result", data);
}

std::vector<AgentEvent> completed_item(const Json& item) {
  const std::string type = text_member(item, "type");
  if (type == "agent_message") return {text_event("message", text_member(item, "text"))};
  if (type == "reasoning") return {text_event("reasoning", text_member(item, "text"))};
  if (type == "error") {
    const std::string text = text_member(item, "message");
    return {is_broken_tools(text) ? text_event("error", text) : warning(text)};
  }
  if (!is_tool_use(item)) return {};
  return {tool_result(item)};
}

std::vector<AgentEvent> started_item(const Json& item) {
  if (!is_tool_use(item)) return {};
  return {tool_call(item)};
}

AgentEvent usage(const Json& message) {
  const Json& usage = member(message, "usage");
  Json data = Json::object();
  for (const char* key : {"input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
                          "reasoning_output_tokens"}) {
    data[key] = json_count(count_member(usage, key));
  }
  return make_event("usage", data);
}

}  // namespace

bool is_tool_use(const Json& item) {
  return !text_member(item, "status").empty();
}

std::vector<AgentEvent> codex_events(const Json& message, const CodexAccount& account) {
  const std::string type = text_member(message, "type");
  if (type == "thread.started") {
    Json data = Json::object();
    put_name(&data, "session", message, "thread_id");
    return {make_event("started", data)};
  }
  if (type == "item.started") return started_item(member(message, "item"));
  if (type == "item.completed") return completed_item(member(message, "item"));
  if (type == "error") return {text_event("retry", text_member(message, "message"))};
  if (type == "turn.failed") return {text_event("error", text_member(member(message, "error"), "message"))};
  if (type == "turn.completed") {
    return {usage(message), text_event("answer", account.last_message)};
  }
  return {};
}

}  // namespace cofferdam::agent
