// How a fuzz target says what must hold.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace cofferdam::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace cofferdam::fuzz
