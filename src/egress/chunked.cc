#include "egress/chunked.h"

#include <algorithm>

namespace cofferdam::egress {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

ChunkedDecoder::Verdict ChunkedDecoder::step(char c) {
  auto expect = [&](char wanted, State next) {
    state_ = next;
    return c == wanted ? Verdict::more : Verdict::bad;
  };
  switch (state_) {
    case State::size: {
      int value = hex_value(c);
      if (value < 0) return digits_ == 0 ? Verdict::bad : expect('\r', State::size_lf);
      if (++digits_ > 8) return Verdict::bad;
      left_ = left_ * 16 + static_cast<std::size_t>(value);
      return Verdict::more;
    }
    case State::size_lf:
      digits_ = 0;
      return expect('\n', left_ == 0 ? State::end_cr : State::data);
    case State::data:
      return Verdict::bad;  // feed() takes data in bulk
    case State::data_cr:
      return expect('\r', State::data_lf);
    case State::data_lf:
      return expect('\n', State::size);
    case State::end_cr:
      return expect('\r', State::end_lf);
    case State::end_lf:
      return c == '\n' ? Verdict::done : Verdict::bad;
  }
  return Verdict::bad;
}

ChunkedDecoder::Verdict ChunkedDecoder::feed(std::string_view in, std::string* out, std::size_t* taken) {
  *taken = 0;
  while (*taken < in.size()) {
    if (state_ == State::data) {
      std::size_t n = std::min(left_, in.size() - *taken);
      out->append(in.substr(*taken, n));
      *taken += n;
      left_ -= n;
      if (left_ == 0) state_ = State::data_cr;
      continue;
    }
    Verdict verdict = step(in[*taken]);
    ++*taken;
    if (verdict != Verdict::more) return verdict;
  }
  return Verdict::more;
}

}  // namespace cofferdam::egress
