#include <fmt/core.h>

#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace cofferdam {

const char* code_name(Code code) {
  switch (code) {
    case Code::usage:
      return "usage";
    case Code::config:
      return "config";
    case Code::missing_tool:
      return "missing-tool";
    case Code::unsupported_host:
      return "unsupported-host";
    case Code::denied:
      return "denied";
    case Code::conflict:
      return "conflict";
    case Code::not_found:
      return "not-found";
    case Code::exhausted:
      return "exhausted";
    case Code::timeout:
      return "timeout";
    case Code::io:
      return "io";
    case Code::protocol:
      return "protocol";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

Error Error::with(const std::string& context) const {
  return Error{code, context + ": " + what, hint};
}

std::string Error::line() const {
  return hint.empty() ? what : fmt::format("{}; {}", what, hint);
}

Error make_error(Code code, std::string what, std::string hint) {
  return Error{code, std::move(what), std::move(hint)};
}

Error sys_error(const std::string& what, int errno_value) {
  Code code = Code::io;
  if (errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EMFILE || errno_value == ENOMEM) {
    code = Code::exhausted;
  } else if (errno_value == EACCES || errno_value == EPERM || errno_value == EROFS) {
    code = Code::denied;
  } else if (errno_value == ENOENT) {
    code = Code::not_found;
  }
  return Error{code, fmt::format("{}: {}", what, std::strerror(errno_value)), {}};
}

}  // namespace cofferdam
