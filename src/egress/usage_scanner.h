// Reads the vendor's token counts out of an answer as it streams by; never holds it up and never changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cofferdam::egress {

struct TokenUsage {
  std::uint64_t input = 0;  // with what was written to and read from the cache
  std::uint64_t output = 0;
  // Parts of the input.
  std::uint64_t cache_read = 0;
  std::uint64_t cache_write = 0;
  std::uint64_t cache_write_1h = 0;  // the part of it that is kept for an hour
};

// Incremental and bounded: longer lines, and longer answers in one piece, are passed over.
class UsageScanner {
 public:
  enum class Form { none, event_stream, json };
  static Form form_of(std::string_view content_type);

  explicit UsageScanner(Form form) : form_(form) {}
  void feed(std::string_view bytes);
  // After the last byte: an answer in one piece is read now.
  void finish();
  const TokenUsage& usage() const { return usage_; }
  // Whether the vendor has said its last word on it: without, more may have been used than is known.
  bool is_final() const { return final_; }

 private:
  void feed_lines(std::string_view bytes);
  void end_line();
  Form form_;
  std::string pending_;    // of the current line, or of the whole JSON answer
  bool overlong_ = false;  // the rest of this line (or answer) is skipped
  TokenUsage usage_;
  bool final_ = false;
};

}  // namespace cofferdam::egress
