#include "base/failpoint.h"

namespace cofferdam {

void failpoint(const char* /*name*/) {}

void failpoint_part(const char* /*part*/, pid_t /*pid*/) {}

std::string failpoint_text(const char* /*name*/) {
  return {};
}

}  // namespace cofferdam
