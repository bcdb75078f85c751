#include "egress/body_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::json_path;
using Denial = std::optional<Decision>;

const Json* member(const Json& object, const char* key) {
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool is_text(const Json* value, std::string_view wanted) {
  return value != nullptr && value->is_string() && value->get_ref<const std::string&>() == wanted;
}

Denial check_model(const GatewayPolicy& policy, const Json& body) {
  const Json* model = member(body, "model");
  bool named = std::any_of(policy.models.begin(), policy.models.end(),
                           [&](const std::string& allowed) { return is_text(model, allowed); });
  if (named) return std::nullopt;
  return deny("model", "$.model");
}

// Agents ask for what the model can do, not for what they need: the ceiling lowers the number instead of
// ending the attempt.
Denial apply_token_ceiling(const GatewayPolicy& policy, Json* body, bool* lowered) {
  auto found = body->find("max_tokens");
  bool valid = found != body->end() && found->is_number_unsigned() && found->get<std::uint64_t>() >= 1;
  if (!valid || policy.max_tokens == 0) return deny("max_tokens", "$.max_tokens");
  if (found->get<std::uint64_t>() > policy.max_tokens) {
    *found = policy.max_tokens;
    *lowered = true;
  }
  return std::nullopt;
}

// Only tools that the client executes: those without a type of the vendor's own.
Denial check_tools(const Json& body) {
  const Json* tools = member(body, "tools");
  if (tools == nullptr) return std::nullopt;
  if (!tools->is_array()) return deny("tools", "$.tools");
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    std::string path = json_path("$.tools", i);
    if (!tool.is_object()) return deny("tools", path);
    const Json* type = member(tool, "type");
    if (type != nullptr && !is_text(type, "custom")) return deny("server-side tool", json_path(path, "type"));
  }
  return std::nullopt;
}

// `source` says where a block's bytes come from. A string is a caption (search results), never fetched.
Denial check_source(const Json& source, const std::string& path) {
  if (source.is_string()) return std::nullopt;
  const Json* type = source.is_object() ? member(source, "type") : nullptr;
  for (const char* inline_type : {"base64", "text", "content"}) {
    if (is_text(type, inline_type)) return std::nullopt;
  }
  return deny("content source", json_path(path, "type"));
}

Denial check_content(const Json& value, const std::string& path);

Denial check_block(const Json& block, const std::string& path) {
  bool tool_use = is_text(member(block, "type"), "tool_use");
  for (const auto& item : block.items()) {
    // What the model asked of a tool of ours is data to the vendor, whatever it looks like.
    if (tool_use && item.key() == "input") continue;
    std::string where = json_path(path, item.key());
    if (item.key() == "file_id") return deny("content source", where);
    if (item.key() == "source") {
      if (auto denial = check_source(item.value(), where)) return denial;
    }
    if (auto denial = check_content(item.value(), where)) return denial;
  }
  return std::nullopt;
}

// The parser bounds the depth, and with it this recursion.
Denial check_content(const Json& value, const std::string& path) {
  if (value.is_object()) return check_block(value, path);
  if (!value.is_array()) return std::nullopt;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_structured()) continue;
    if (auto denial = check_content(value[i], json_path(path, i))) return denial;
  }
  return std::nullopt;
}

Denial check_members(const Json& body) {
  for (const char* key : {"mcp_servers", "container"}) {
    if (body.contains(key)) return deny(key, json_path("$", key));
  }
  for (const char* key : {"messages", "system"}) {
    const Json* content = member(body, key);
    if (content == nullptr) continue;
    if (auto denial = check_content(*content, json_path("$", key))) return denial;
  }
  return std::nullopt;
}

}  // namespace

BodyVerdict judge_messages_body(const GatewayPolicy& policy, std::string_view bytes) {
  BodyVerdict verdict;
  auto parsed = contract::parse_json(bytes, kMaxBodyBytes, kMaxBodyDepth);
  if (!parsed) {
    // The parser's text names the place, never the content.
    verdict.decision = deny("json", parsed.error().what, 400);
    return verdict;
  }
  Json& body = *parsed;
  Denial denial;
  if (!body.is_object()) denial = deny("json", "$", 400);
  if (!denial) denial = check_model(policy, body);
  if (!denial) denial = apply_token_ceiling(policy, &body, &verdict.max_tokens_lowered);
  if (!denial) denial = check_tools(body);
  if (!denial) denial = check_members(body);
  if (denial) {
    verdict.decision = *std::move(denial);
    return verdict;
  }
  verdict.decision = {Action::relay, 200, "messages", {}, false};
  verdict.body = contract::canonical(body);
  return verdict;
}

}  // namespace cofferdam::egress
