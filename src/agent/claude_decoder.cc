#include "agent/claude.h"
#include "agent/event_data.h"

namespace cofferdam::agent {

using contract::Json;

namespace {

class ClaudeDecoder final : public Decoder {
 public:
  explicit ClaudeDecoder(contract::Phase phase) : phase_(phase) {}

  std::vector<AgentEvent> line(std::string_view text) override {
    if (text.empty()) return {};
    Result<Json> message = contract::parse_json_lenient(text, kMaxLineBytes);
    if (!message || !message->is_object()) {
      ++account_.skipped_lines;  // the CLI mixes warnings for people into the stream
      return {};
    }
    note(*message);
    std::vector<AgentEvent> events = claude_events(*message);
    for (AgentEvent& step : steps_done(*message)) events.push_back(std::move(step));
    return events;
  }

  Verdict finish(const ExitStatus& exit) override { return claude_verdict(account_, phase_, exit); }

 private:
  // The call of its tool holds the whole list; the list is what the model says it is, answered or not.
  std::vector<AgentEvent> steps_done(const Json& message) {
    std::vector<AgentEvent> events;
    const Json& content = member(member(message, "message"), "content");
    if (text_member(message, "type") != "assistant" || !content.is_array()) return events;
    const auto done = [](const Json& step) { return text_member(step, "status") == "completed"; };
    for (std::size_t i = 0; i < content.size() && i < kMaxBlocks; ++i) {
      if (text_member(content[i], "type") != "tool_use" || text_member(content[i], "name") != "TodoWrite")
        continue;
      const Json& list = member(member(content[i], "input"), "todos");
      for (AgentEvent& step : steps_.read(list, "content", done)) events.push_back(std::move(step));
    }
    return events;
  }

  void note(const Json& message) {
    const std::string type = text_member(message, "type");
    if (type == "result") account_.result = message;
    if (type == "system" && text_member(message, "subtype") == "init") {
      account_.version = text_member(message, "claude_code_version");
    }
    if (type == "system" && text_member(message, "subtype") == "api_retry") {
      account_.last_error = text_member(message, "error");
    }
    if (type != "assistant") return;
    const std::string model = text_member(member(message, "message"), "model");
    // What the CLI says in the model's place, errors above all, has this name.
    if (!model.empty() && model != "<synthetic>") account_.model_spoke = true;
  }

  const contract::Phase phase_;
  ClaudeAccount account_;
  StepList steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_claude_decoder(contract::Phase phase) {
  return std::make_unique<ClaudeDecoder>(phase);
}

}  // namespace cofferdam::agent
