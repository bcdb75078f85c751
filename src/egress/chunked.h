// The chunked transfer coding (RFC 9112, section 7.1) as a request may use it: no extensions, no trailers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cofferdam::egress {

// Incremental; the verdicts `done` and `bad` are final.
class ChunkedDecoder {
 public:
  enum class Verdict { more, done, bad };
  // Appends decoded bytes to `out` and says how many of `in` were taken; bytes behind the end are left.
  Verdict feed(std::string_view in, std::string* out, std::size_t* taken);

 private:
  enum class State { size, size_lf, data, data_cr, data_lf, end_cr, end_lf };
  Verdict step(char c);
  State state_ = State::size;
  std::size_t left_ = 0;
  int digits_ = 0;
};

}  // namespace cofferdam::egress
