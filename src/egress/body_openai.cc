// OpenAI's Responses API as Codex CLI 0.171.0 uses it, with tools in `tools` and in `additional_tools` items.
#include "egress/body_table.h"

namespace cofferdam::egress {
namespace {

// Keys that would make the vendor act or remember for the box; named here so that the denial says so.
constexpr BodyRow kDenied[] = {
    {"request", "background", "!background", "the answer would be kept at the vendor"},
    {"request", "conversation", "!conversation", "what is stored at the vendor is not of this attempt"},
    {"request", "previous_response_id", "!previous_response_id", "as conversation"},
    {"request", "prompt", "!stored prompt", "a prompt that is stored at the vendor, with its own tools"},
    {"request", "service_tier", "!service_tier", "what a request costs is not the box's choice"},
    {"request", "metadata", "!metadata", "is stored with the account"},
    {"item:item_reference", "type", "!stored item", "what is stored at the vendor is not of this attempt"},
    {"part:input_image", "file_id", "!content source", "a file of the account, not of this request"},
    {"part:input_file", "type", "!content source", "a file of the account or at a URL"},
};

constexpr BodyRow kRequest[] = {
    {"request", "model", "model", "one that the invocation names"},
    {"request", "max_output_tokens", "ceiling", "the output of one request is bounded"},
    {"request", "store", "false", "nothing is kept; set by the gateway when absent"},
    {"request", "stream", "bool", "form of the answer"},
    {"request", "input", "text|[@item]", "the conversation"},
    {"request", "instructions", "text", "inline"},
    {"request", "tools", "[@tool]", "tools that the client executes"},
    {"request", "tool_choice", "=auto|=none|=required|@choice", "which of them"},
    {"request", "parallel_tool_calls", "bool", "form of the answer"},
    {"request", "reasoning", "@reasoning|null", "how much the model thinks"},
    {"request", "include", "[=reasoning.encrypted_content]", "what of its thinking comes back, sealed"},
    {"request", "prompt_cache_key", "text:128", "finds the vendor's prompt cache"},
    {"request", "text", "@text", "form of the answer"},
    {"request", "client_metadata", "@client_metadata", "the CLI's session, as its own text"},
    {"request", "temperature", "number", "sampling"},
    {"request", "top_p", "number", "sampling"},
    {"choice", "type", "=function|=custom", "a tool of the client"},
    {"choice", "name", "text:256", "of a tool"},
    {"reasoning", "effort", "text:32|null", "as recorded"},
    {"reasoning", "summary", "text:32|null", "as recorded"},
    {"reasoning", "context", "text:32", "as recorded"},
    {"text", "verbosity", "text:32|null", "as recorded"},
    {"text", "format", "@format", "structured answers"},
    {"format", "type", "=json_schema|=text", "as recorded"},
    {"format", "name", "text:256", "of the schema"},
    {"format", "strict", "bool", "the model keeps to it"},
    {"format", "schema", "schema", "of the answer"},
    {"client_metadata", "session_id", "text:128", "as recorded"},
    {"client_metadata", "thread_id", "text:128", "as recorded"},
    {"client_metadata", "turn_id", "text:128", "as recorded"},
    {"client_metadata", "root_turn_id", "text:128", "as recorded"},
    {"client_metadata", "x-codex-installation-id", "text:128", "as recorded"},
    {"client_metadata", "x-codex-window-id", "text:128", "as recorded"},
    {"client_metadata", "x-codex-turn-metadata", "text:4096", "as recorded"},
    {"client_metadata", "x-codex-parent-thread-id", "text:128", "of a sub-agent"},
    {"client_metadata", "parent_thread_id", "text:128", "of a sub-agent"},
    {"client_metadata", "parent_turn_id", "text:128", "of a sub-agent"},
    {"client_metadata", "x-openai-subagent", "text:64", "of a sub-agent"},
};

constexpr BodyRow kItems[] = {
    {"item:message", "type", "text", ""},
    {"item:message", "id", "text:256", "names the item"},
    {"item:message", "status", "text:32", "replayed"},
    {"item:message", "role", "=user|=assistant|=developer|=system", "as recorded"},
    {"item:message", "phase", "text:32|null", "replayed"},
    {"item:message", "content", "text|[@part]", "inline content"},
    {"item:reasoning", "type", "text", ""},
    {"item:reasoning", "id", "text:256", "names the item"},
    {"item:reasoning", "status", "text:32", "replayed"},
    {"item:reasoning", "summary", "[@thought]", "replayed"},
    {"item:reasoning", "content", "null|[@thought]", "replayed"},
    {"item:reasoning", "encrypted_content", "text|null", "the vendor's, replayed"},
    {"item:function_call", "type", "text", ""},
    {"item:function_call", "id", "text:256", "names the item"},
    {"item:function_call", "call_id", "text:256", "names the call"},
    {"item:function_call", "status", "text:32", "replayed"},
    {"item:function_call", "name", "text:256", "of the client's tool"},
    {"item:function_call", "namespace", "text:256", "of the client's tool"},
    {"item:function_call", "arguments", "text", "what the model asked of it"},
    {"item:function_call_output", "type", "text", ""},
    {"item:function_call_output", "id", "text:256", "names the item"},
    {"item:function_call_output", "call_id", "text:256", "names the call"},
    {"item:function_call_output", "status", "text:32", "how it went"},
    {"item:function_call_output", "output", "text|[@part]", "inline"},
    {"item:custom_tool_call", "type", "text", ""},
    {"item:custom_tool_call", "id", "text:256", "names the item"},
    {"item:custom_tool_call", "call_id", "text:256", "names the call"},
    {"item:custom_tool_call", "status", "text:32", "replayed"},
    {"item:custom_tool_call", "name", "text:256", "of the client's tool"},
    {"item:custom_tool_call", "namespace", "text:256", "of the client's tool"},
    {"item:custom_tool_call", "input", "text", "what the model asked of it"},
    {"item:custom_tool_call_output", "type", "text", ""},
    {"item:custom_tool_call_output", "id", "text:256", "names the item"},
    {"item:custom_tool_call_output", "call_id", "text:256", "names the call"},
    {"item:custom_tool_call_output", "status", "text:32", "how it went"},
    {"item:custom_tool_call_output", "output", "text|[@part]", "inline"},
    {"item:additional_tools", "type", "text", ""},
    {"item:additional_tools", "id", "text:256", "names the item"},
    {"item:additional_tools", "role", "=developer", "as recorded"},
    {"item:additional_tools", "tools", "[@tool]", "judged as in `tools`"},
    {"item:tool_search_call", "type", "text", ""},
    {"item:tool_search_call", "id", "text:256", "names the item"},
    {"item:tool_search_call", "call_id", "text:256", "names the call"},
    {"item:tool_search_call", "status", "text:32", "replayed"},
    {"item:tool_search_call", "execution", "=client|needed", "the client searches among its own tools"},
    {"item:tool_search_call", "arguments", "any", "what the model asked for"},
    {"item:tool_search_output", "type", "text", ""},
    {"item:tool_search_output", "id", "text:256", "names the item"},
    {"item:tool_search_output", "call_id", "text:256", "names the call"},
    {"item:tool_search_output", "status", "text:32", "how it went"},
    {"item:tool_search_output", "execution", "=client|needed", "as above"},
    {"item:tool_search_output", "tools", "[@tool]", "judged as in `tools`"},
};

constexpr BodyRow kParts[] = {
    {"part:input_text", "type", "text", ""},
    {"part:input_text", "text", "text", "content"},
    {"part:output_text", "type", "text", ""},
    {"part:output_text", "text", "text", "replayed"},
    {"part:output_text", "annotations", "[]", "replayed from an answer without any"},
    {"part:output_text", "logprobs", "[]", "replayed from an answer without any"},
    {"part:refusal", "type", "text", ""},
    {"part:refusal", "refusal", "text", "replayed"},
    {"part:input_image", "type", "text", ""},
    {"part:input_image", "image_url", "image", "inline"},
    {"part:input_image", "detail", "text:32|null", "how closely the model looks"},
    {"thought:summary_text", "type", "text", ""},
    {"thought:summary_text", "text", "text", "replayed"},
    {"thought:reasoning_text", "type", "text", ""},
    {"thought:reasoning_text", "text", "text", "replayed"},
};

constexpr BodyRow kTools[] = {
    {"tool:function", "type", "text", ""},
    {"tool:function", "name", "text:256", "of the client's tool"},
    {"tool:function", "description", "text|null", "for the model"},
    {"tool:function", "strict", "bool|null", "the model keeps to the schema"},
    {"tool:function", "parameters", "schema|null", "of the tool's input"},
    {"tool:function", "defer_loading", "bool", "shown to the model only when it searches"},
    {"tool:custom", "type", "text", ""},
    {"tool:custom", "name", "text:256", "of the client's tool"},
    {"tool:custom", "description", "text|null", "for the model"},
    {"tool:custom", "format", "@grammar", "of the tool's input"},
    {"tool:custom", "defer_loading", "bool", "as above"},
    {"grammar", "type", "=grammar|=text", "as recorded"},
    {"grammar", "syntax", "=lark|=regex", "as recorded"},
    {"grammar", "definition", "text", "the grammar itself"},
    {"tool:namespace", "type", "text", ""},
    {"tool:namespace", "name", "text:256", "of a group of the client's tools"},
    {"tool:namespace", "description", "text|null", "for the model"},
    {"tool:namespace", "tools", "[@tool]", "judged as in `tools`"},
    {"tool:tool_search", "type", "text", ""},
    {"tool:tool_search", "execution", "=client|needed", "the client searches among its own tools"},
    {"tool:tool_search", "description", "text|null", "for the model"},
    {"tool:tool_search", "parameters", "schema|null", "of the search"},
};

// What exists only for those who have opted in. The vendor then contacts whom it or the model likes.
constexpr BodyRow kOptIn[] = {
    {"tool:web_search", "type", "text", ""},
    {"tool:web_search", "external_web_access", "bool", "live, or from the vendor's store"},
    {"tool:web_search", "search_content_types", "[text:32]", "bound"},
    {"tool:web_search", "search_context_size", "text:32", "bound"},
    {"item:web_search_call", "type", "text", ""},
    {"item:web_search_call", "id", "text:256", "names the item"},
    {"item:web_search_call", "status", "text:32", "replayed"},
    {"item:web_search_call", "action", "any", "what the vendor did, replayed"},
};

}  // namespace

BodyRows openai_rows() {
  BodyRows out;
  for (const BodyRow& row : kDenied) out.rows.push_back(row);
  for (const BodyRow& row : kRequest) out.rows.push_back(row);
  for (const BodyRow& row : kItems) out.rows.push_back(row);
  for (const BodyRow& row : kParts) out.rows.push_back(row);
  for (const BodyRow& row : kTools) out.rows.push_back(row);
  for (const BodyRow& row : kOptIn) out.rows.push_back(row);
  out.families = {{"item", "item type"},
                  {"part", "content type"},
                  {"thought", "content type"},
                  {"tool", "server-side tool"}};
  out.opt_in = {{"web_search", "tool:web_search"}, {"web_search", "item:web_search_call"}};
  return out;
}

}  // namespace cofferdam::egress
