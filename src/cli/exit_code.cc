#include "cli/exit_code.h"

namespace cofferdam::cli {

int exit_code_for(Code code) {
  switch (code) {
    case Code::usage:
    case Code::config:
    case Code::not_found:
      return kExitUsage;
    case Code::denied:
    case Code::conflict:
    case Code::unsupported_host:
    case Code::exhausted:
      return kExitRefused;
    case Code::missing_tool:
    case Code::timeout:
    case Code::io:
    case Code::protocol:
    case Code::internal:
      return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace cofferdam::cli
