// Error and Result: how every function of Cofferdam says that *we* could not do something.
// What became of an attempt is a different thing and a different type: contract/outcome.h.
//
// Thread rules: values; no global state.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace cofferdam {

// Closed, and chosen by what the caller should do about it; code_name() and exit codes hang on it.
enum class Code {
  usage,             // the request is malformed: correct it
  config,            // the configuration is malformed: correct it
  missing_tool,      // a program or file that we need is absent: install it
  unsupported_host,  // the kernel or host cannot enforce what is required
  denied,            // policy or permissions forbid it
  conflict,          // somebody else was first: an id, a ref, a lock
  not_found,         // what was named does not exist
  exhausted,         // a bound was reached: bytes, inodes, counts
  timeout,           // a bounded wait ended
  io,                // the operating system refused
  protocol,          // a peer (or a file) spoke out of turn
  internal,          // a defect of ours
};

const char* code_name(Code code);

// One line that a person can act on: what failed, why, what to do next. `hint` may be empty.
struct [[nodiscard]] Error {
  Code code = Code::internal;
  std::string what;
  std::string hint = {};

  // Puts "context: " in front of `what`.
  Error with(const std::string& context) const;
  // what, and the hint behind it.
  std::string line() const;
};

Error make_error(Code code, std::string what, std::string hint = {});
// "what: strerror(errno_value)"; errno values that mean full or denied choose their own Code.
Error sys_error(const std::string& what, int errno_value);

// Either a value or an Error; names as in std::expected. [[nodiscard]] so that no failure is dropped.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return !error_.has_value(); }
  bool has_value() const { return !error_.has_value(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace cofferdam

#define COFFERDAM_CONCAT_INNER(a, b) a##b
#define COFFERDAM_CONCAT(a, b) COFFERDAM_CONCAT_INNER(a, b)
// TRY(auto x, expression): x is the value, or the function returns the error.
#define TRY(declaration, expression) TRY_AS(COFFERDAM_CONCAT(try_result_, __LINE__), declaration, expression)
// A declaration cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define TRY_AS(name, declaration, expression) \
  auto name = (expression);                   \
  if (!name) return std::move(name).error();  \
  declaration = *std::move(name)
// NOLINTEND(bugprone-macro-parentheses)
// The same for a Status.
#define TRY_VOID(expression)                                                               \
  do {                                                                                     \
    if (auto try_status = (expression); !try_status) return std::move(try_status).error(); \
  } while (false)
