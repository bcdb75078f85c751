#include "settle/kept_output.h"

#include <algorithm>

namespace cofferdam::settle {

std::string_view KeptOutput::take(std::string_view bytes) {
  taken_ += bytes.size();
  const std::string_view head = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), head_ - in_head_));
  in_head_ += head.size();
  std::string_view rest = bytes.substr(head.size());
  // What would be overwritten at once need not be copied.
  if (rest.size() > tail_) rest.remove_prefix(rest.size() - tail_);
  const std::size_t grown = std::min(rest.size(), tail_ - ring_.size());
  ring_.append(rest.substr(0, grown));
  rest.remove_prefix(grown);
  while (!rest.empty()) {
    const std::size_t part = std::min(rest.size(), tail_ - start_);
    rest.copy(ring_.data() + start_, part);
    start_ = (start_ + part) % tail_;
    rest.remove_prefix(part);
  }
  return head;
}

std::string KeptOutput::tail() const {
  return ring_.substr(start_) + ring_.substr(0, start_);
}

}  // namespace cofferdam::settle
