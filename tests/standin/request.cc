#include "vendor_api.h"

namespace cofferdam::standin {

std::string_view Request::header(const std::string& name) const {
  auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace cofferdam::standin
