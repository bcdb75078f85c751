// What an agent says on its standard output, line by line, and what it comes to in the end.
//
// The lines are hostile: whatever they hold, a decoder yields bounded events and one verdict. It never
// throws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "contract/invocation.h"

namespace cofferdam::agent {

// Longer lines are for the caller to cut; the decoders skip them. The most that limits.line_bytes can be.
inline constexpr std::size_t kMaxLineBytes = 1U << 30U;
// A command has no protocol: of its longer lines nothing is shown.
inline constexpr std::size_t kMaxCommandLine = 1U << 20U;

struct AgentEvent {
  // started, message, reasoning, tool-call, tool-result, usage, retry, warning, error, answer, step (one of
  // the agent's own list, which it has done)
  std::string kind;
  std::string data;  // a JSON object, canonical, at most about 200 kB
};

// Did the agent do its work, by its own account? `ok` is never true on the exit status alone for an agent
// that reports, and never true against the exit status.
struct Verdict {
  bool ok = false;
  std::string reason;  // why not: the vendor's own words where there are any; printable, bounded
  // Planning: the checked plan as canonical JSON. Question and review: the text. Otherwise nothing.
  std::optional<std::string> answer;
  std::string summary;  // printable, bounded
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::optional<double> cost_usd;
  std::string version;              // as the agent named itself; empty when it did not
  std::uint64_t skipped_lines = 0;  // lines that were none of the agent's protocol
};

class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;
  // One line without its newline.
  virtual std::vector<AgentEvent> line(std::string_view text) = 0;
  // False once no further line would change or show anything.
  virtual bool listens() const { return true; }
  // Once, after the last line.
  virtual Verdict finish(const ExitStatus& exit) = 0;
};

std::unique_ptr<Decoder> make_decoder(const contract::Invocation& invocation);

}  // namespace cofferdam::agent
