#include "agent/decoder.h"

#include "agent/claude.h"
#include "agent/codex.h"
#include "contract/json.h"

namespace cofferdam::agent {
namespace {

// Any program: it has no protocol, so its lines are shown and its exit status decides.
class CommandDecoder final : public Decoder {
 public:
  std::vector<AgentEvent> line(std::string_view text) override {
    ++lines_;
    if (lines_ > kShownLines + 1) return {};
    AgentEvent event;
    contract::Json data = contract::Json::object();
    event.kind = lines_ > kShownLines ? "warning" : "message";
    data["text"] = lines_ > kShownLines ? contract::Json("further lines are not shown")
                                        : contract::json_text(text, kShownBytes);
    event.data = contract::canonical(data);
    return {event};
  }

  bool listens() const override { return lines_ <= kShownLines; }

  Verdict finish(const ExitStatus& exit) override {
    Verdict verdict;
    verdict.ok = exit.success();
    if (!verdict.ok) verdict.reason = "the command ended with " + exit.describe();
    return verdict;
  }

 private:
  static constexpr std::uint64_t kShownLines = 1000;
  static constexpr std::size_t kShownBytes = 4096;
  std::uint64_t lines_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const contract::Invocation& invocation) {
  if (invocation->agent.name == "claude") return make_claude_decoder(invocation->phase);
  if (invocation->agent.name == "codex") return make_codex_decoder(invocation->phase);
  return std::make_unique<CommandDecoder>();
}

}  // namespace cofferdam::agent
