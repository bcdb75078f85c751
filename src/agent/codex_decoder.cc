#include "agent/codex.h"
#include "agent/event_data.h"
#include "base/text.h"

namespace cofferdam::agent {

using contract::Json;

// In the CLI's own words; the model that works in "code mode" has no other way to call a tool.
bool is_broken_tools(const std::string& message) {
  return starts_with(message, "Code Mode is unavailable");
}

namespace {

class CodexDecoder final : public Decoder {
 public:
  explicit CodexDecoder(contract::Phase phase) : phase_(phase) {}

  std::vector<AgentEvent> line(std::string_view text) override {
    if (text.empty()) return {};
    Result<Json> message = contract::parse_json_lenient(text, kMaxLineBytes);
    if (!message || !message->is_object()) {
      ++account_.skipped_lines;
      return {};
    }
    note(*message);
    std::vector<AgentEvent> events = codex_events(*message, account_);
    const Json& item = member(*message, "item");
    if (text_member(item, "type") != "todo_list") return events;
    const auto done = [](const Json& step) { return member(step, "completed") == Json(true); };
    for (AgentEvent& step : steps_.read(member(item, "items"), "text", done))
      events.push_back(std::move(step));
    return events;
  }

  Verdict finish(const ExitStatus& exit) override { return codex_verdict(account_, phase_, exit); }

 private:
  void note(const Json& message) {
    const std::string type = text_member(message, "type");
    if (type == "item.completed") note_item(member(message, "item"));
    // What was said before a tool was called is no answer; a command may well end after the last word.
    if (type == "item.started" && is_tool_use(member(message, "item"))) account_.last_message.clear();
    if (type == "error") account_.last_error = text_member(message, "message");
    if (type == "turn.failed") account_.failure = text_member(member(message, "error"), "message");
    if (type != "turn.completed") return;
    account_.completed = true;
    const Json& usage = member(message, "usage");
    account_.input_tokens = count_member(usage, "input_tokens");
    account_.output_tokens = count_member(usage, "output_tokens");
  }

  void note_item(const Json& item) {
    const std::string type = text_member(item, "type");
    if (type == "agent_message") account_.last_message = text_member(item, "text");
    if (type != "error") return;
    std::string text = text_member(item, "message");
    if (is_broken_tools(text)) account_.broken_tools = std::move(text);
  }

  const contract::Phase phase_;
  CodexAccount account_;
  StepList steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_codex_decoder(contract::Phase phase) {
  return std::make_unique<CodexDecoder>(phase);
}

}  // namespace cofferdam::agent
