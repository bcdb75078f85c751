// Cuts a hostile stream into lines with bounds on line and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::settle {

// Lines longer than the bound are dropped whole and counted; memory never exceeds bound plus one chunk.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}
  std::vector<std::string> feed(std::string_view bytes);
  // The last line, if the stream did not end with a newline.
  std::vector<std::string> finish();
  std::uint64_t dropped_lines() const { return dropped_; }

 private:
  std::size_t max_line_;
  std::string partial_;
  bool skipping_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace cofferdam::settle
