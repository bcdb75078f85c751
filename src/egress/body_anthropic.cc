// Anthropic's Messages API as Claude Code 2.1.197 uses it.
#include "egress/body_table.h"

namespace cofferdam::egress {
namespace {

// Keys that would make the vendor act for the box; named here so that the denial says so.
constexpr BodyRow kDenied[] = {
    {"request", "mcp_servers", "!mcp_servers", "the vendor would call a server that the box names"},
    {"request", "container", "!container", "the vendor would run code for the box, or reuse what ran"},
    {"request", "service_tier", "!service_tier", "what a request costs is not the box's choice"},
    {"request", "speed", "!speed", "what a request costs is not the box's choice"},
    {"block:image", "file_id", "!content source", "a file of the account, not of this request"},
    {"block:document", "file_id", "!content source", "a file of the account, not of this request"},
};

constexpr BodyRow kRequest[] = {
    {"request", "model", "model", "one that the invocation names"},
    {"request", "max_tokens", "ceiling", "the output of one request is bounded"},
    {"request", "messages", "[@message]", "the conversation"},
    {"request", "system", "text|[@block:text]", "instructions, inline"},
    {"request", "tools", "[@tool]", "tools that the client executes"},
    {"request", "tool_choice", "@choice", "which of them"},
    {"request", "metadata", "@metadata", "the CLI's session and device, as its own text"},
    {"request", "thinking", "@thinking", "how much the model thinks"},
    {"request", "context_management", "@context_management", "what the model is no longer shown"},
    {"request", "output_config", "@output_config", "effort, and the schema of the answer"},
    {"request", "stream", "bool", "form of the answer"},
    {"request", "stop_sequences", "[text:256]", "sampling"},
    {"request", "temperature", "number", "sampling"},
    {"request", "top_p", "number", "sampling"},
    {"request", "top_k", "count", "sampling"},
    {"metadata", "user_id", "text:1024", "at most what the CLI writes there"},
    {"choice", "type", "=auto|=any|=tool|=none", "all four choose among the client's tools"},
    {"choice", "name", "text:256", "of a tool"},
    {"choice", "disable_parallel_tool_use", "bool", "form of the answer"},
    {"thinking", "type", "=adaptive|=enabled|=disabled", "as recorded"},
    {"thinking", "budget_tokens", "count", "checked against the output ceiling"},
    {"thinking", "display", "text:32", "whether thinking is shown"},
    {"output_config", "effort", "text:32", "as recorded"},
    {"output_config", "format", "@format", "structured answers"},
    {"format", "type", "=json_schema", "the only form"},
    {"format", "schema", "schema", "of the answer"},
    {"context_management", "edits", "[@edit]", "as recorded"},
    {"edit:clear_thinking_20251015", "type", "text", "drops old thinking"},
    {"edit:clear_thinking_20251015", "keep", "text:32|@keep", "how much of it stays"},
    {"keep", "type", "text:64", "unit"},
    {"keep", "value", "count", "number of turns"},
};

constexpr BodyRow kContent[] = {
    {"message", "role", "=user|=assistant|=system", "system: reminders in the middle of a conversation"},
    {"message", "content", "text|[@block]", "inline content"},
    {"cache", "type", "=ephemeral", "the vendor's prompt cache, minutes to an hour"},
    {"cache", "ttl", "=5m|=1h", "as recorded"},
    {"block:text", "type", "=text", "also asked for by this name alone"},
    {"block:text", "text", "text", "content"},
    {"block:text", "citations", "null|[]", "replayed from an answer without any"},
    {"block:text", "cache_control", "@cache|null", "caching"},
    {"block:thinking", "type", "text", ""},
    {"block:thinking", "thinking", "text", "replayed"},
    {"block:thinking", "signature", "text", "the vendor's, replayed"},
    {"block:redacted_thinking", "type", "text", ""},
    {"block:redacted_thinking", "data", "text", "the vendor's, replayed"},
    {"block:tool_use", "type", "text", ""},
    {"block:tool_use", "id", "text:256", "names the call"},
    {"block:tool_use", "name", "text:256", "of the client's tool"},
    {"block:tool_use", "input", "any", "what the model asked of it: data, also when it looks like a source"},
    {"block:tool_use", "cache_control", "@cache|null", "caching"},
    {"block:tool_result", "type", "text", ""},
    {"block:tool_result", "tool_use_id", "text:256", "names the call"},
    {"block:tool_result", "content", "text|[@result]", "inline"},
    {"block:tool_result", "is_error", "bool", "how it went"},
    {"block:tool_result", "cache_control", "@cache|null", "caching"},
    {"block:image", "type", "text", ""},
    {"block:image", "source", "@picture", "inline"},
    {"block:image", "cache_control", "@cache|null", "caching"},
    {"block:document", "type", "text", ""},
    {"block:document", "source", "@source", "inline"},
    {"block:document", "title", "text|null", "caption"},
    {"block:document", "context", "text|null", "caption"},
    {"block:document", "cache_control", "@cache|null", "caching"},
    {"result:text", "type", "text", ""},
    {"result:text", "text", "text", "what a tool printed"},
    {"result:text", "cache_control", "@cache|null", "caching"},
    {"result:image", "type", "text", ""},
    {"result:image", "source", "@picture", "a picture that the client has read"},
    {"result:document", "type", "text", ""},
    {"result:document", "source", "@source", "a document that the client has read"},
    {"result:tool_reference", "type", "text", ""},
    {"result:tool_reference", "tool_name", "text:256", "one of the request's own deferred tools"},
    {"source:base64", "type", "text", ""},
    {"source:base64", "media_type", "=application/pdf", "the one kind that the vendor takes"},
    {"source:base64", "data", "base64", "the bytes themselves"},
    {"source:text", "type", "text", ""},
    {"source:text", "media_type", "=text/plain", "the one kind that the vendor takes"},
    {"source:text", "data", "text", "the text itself"},
    {"picture:base64", "type", "text", ""},
    {"picture:base64", "media_type", "=image/jpeg|=image/png|=image/gif|=image/webp",
     "what the vendor takes"},
    {"picture:base64", "data", "base64", "the bytes themselves"},
};

constexpr BodyRow kTools[] = {
    {"tool:", "name", "text:256", "of the client's tool"},
    {"tool:", "description", "text", "for the model"},
    {"tool:", "input_schema", "schema", "of the tool's input"},
    {"tool:", "cache_control", "@cache|null", "caching"},
    {"tool:", "defer_loading", "bool", "shown to the model only when it searches; judged here all the same"},
    {"tool:", "strict", "bool", "the model keeps to the schema"},
    {"tool:custom", "type", "text", "the same, said aloud"},
    {"tool:custom", "name", "text:256", "of the client's tool"},
    {"tool:custom", "description", "text", "for the model"},
    {"tool:custom", "input_schema", "schema", "of the tool's input"},
    {"tool:custom", "cache_control", "@cache|null", "caching"},
    {"tool:custom", "defer_loading", "bool", "as above"},
    {"tool:custom", "strict", "bool", "as above"},
};

// What exists only for those who have opted in. The vendor then contacts whom it or the model likes.
constexpr BodyRow kOptIn[] = {
    {"tool:web_search_20250305", "type", "text", ""},
    {"tool:web_search_20250305", "name", "=web_search", "the vendor's"},
    {"tool:web_search_20250305", "max_uses", "count", "bound"},
    {"tool:web_search_20250305", "allowed_domains", "[text:256]", "bound"},
    {"tool:web_search_20250305", "blocked_domains", "[text:256]", "bound"},
    {"tool:web_fetch_20250910", "type", "text", ""},
    {"tool:web_fetch_20250910", "name", "=web_fetch", "the vendor's"},
    {"tool:web_fetch_20250910", "max_uses", "count", "bound"},
    {"tool:web_fetch_20250910", "max_content_tokens", "count", "bound"},
    {"tool:web_fetch_20250910", "allowed_domains", "[text:256]", "bound"},
    {"tool:web_fetch_20250910", "blocked_domains", "[text:256]", "bound"},
    {"block:server_tool_use", "type", "text", ""},
    {"block:server_tool_use", "id", "text:256", "names the call"},
    {"block:server_tool_use", "name", "text:256", "of the vendor's tool"},
    {"block:server_tool_use", "input", "any", "what the model asked of it, replayed"},
    {"block:web_search_tool_result", "type", "text", ""},
    {"block:web_search_tool_result", "tool_use_id", "text:256", "names the call"},
    {"block:web_search_tool_result", "content", "any", "the vendor's, replayed"},
    {"block:web_fetch_tool_result", "type", "text", ""},
    {"block:web_fetch_tool_result", "tool_use_id", "text:256", "names the call"},
    {"block:web_fetch_tool_result", "content", "any", "the vendor's, replayed"},
};

}  // namespace

BodyRows anthropic_rows() {
  BodyRows out;
  for (const BodyRow& row : kDenied) out.rows.push_back(row);
  for (const BodyRow& row : kRequest) out.rows.push_back(row);
  for (const BodyRow& row : kContent) out.rows.push_back(row);
  for (const BodyRow& row : kTools) out.rows.push_back(row);
  for (const BodyRow& row : kOptIn) out.rows.push_back(row);
  out.families = {{"block", "content type"},    {"result", "content type"},
                  {"source", "content source"}, {"picture", "content source"},
                  {"edit", "context edit"},     {"tool", "server-side tool", false}};
  out.opt_in = {{"web_search_20250305", "tool:web_search_20250305"},
                {"web_search_20250305", "block:server_tool_use"},
                {"web_search_20250305", "block:web_search_tool_result"},
                {"web_fetch_20250910", "tool:web_fetch_20250910"},
                {"web_fetch_20250910", "block:server_tool_use"},
                {"web_fetch_20250910", "block:web_fetch_tool_result"}};
  return out;
}

}  // namespace cofferdam::egress
