#include "settle/line_splitter.h"

namespace cofferdam::settle {

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!skipping_ && partial_.size() + part.size() > max_line_) {
      skipping_ = true;
      ++dropped_;
      partial_.clear();
      partial_.shrink_to_fit();
    }
    if (!skipping_) partial_.append(part);
    if (end == std::string_view::npos) break;
    if (!skipping_) lines.push_back(std::move(partial_));
    partial_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> LineSplitter::finish() {
  std::vector<std::string> lines;
  if (!skipping_ && !partial_.empty()) lines.push_back(std::move(partial_));
  partial_.clear();
  return lines;
}

}  // namespace cofferdam::settle
