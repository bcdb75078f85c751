#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace cofferdam::cli {

Status print_out(std::string_view text) {
  Status written = write_all(STDOUT_FILENO, text);
  if (!written) return written.error().with("cannot write to standard output");
  return written;
}

void print_error(const Error& error) {
  constexpr std::size_t kMaxErrorLine = 4096;
  (void)write_all(STDERR_FILENO, "cofferdam: " + one_line(error.line(), kMaxErrorLine) + "\n").has_value();
}

void warn_of_capture(const contract::Config& config, const std::string& attempt_dir) {
  if (!config.capture_bodies) return;
  const std::string line =
      "cofferdam: WARNING: bodies are captured: what the agent and the vendor say is written to " +
      one_line(attempt_dir, 4096) + "/bodies.ndjson; credentials are taken out, the content is not\n";
  (void)write_all(STDERR_FILENO, line).has_value();
}

}  // namespace cofferdam::cli
