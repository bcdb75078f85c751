// SQLiteCpp behind our rules: SQL is a string literal, and no exception leaves this library.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace cofferdam::ledger {

// Text that can only be a string literal, so that no value ever becomes SQL.
class Sql {
 public:
  template <std::size_t N>
  consteval Sql(const char (&text)[N]) : text_(text) {}  // NOLINT(google-explicit-constructor)
  const char* text() const { return text_; }

 private:
  const char* text_;
};

inline SQLite::Statement prepare(SQLite::Database& db, Sql sql) {
  return {db, sql.text()};
}

inline void bind_at(SQLite::Statement& statement, int index, const std::string& value) {
  statement.bind(index, value);
}
inline void bind_at(SQLite::Statement& statement, int index, std::int64_t value) {
  statement.bind(index, value);
}
inline void bind_at(SQLite::Statement& statement, int index, const std::optional<std::string>& value) {
  value.has_value() ? statement.bind(index, *value) : statement.bind(index);
}
inline void bind_at(SQLite::Statement& statement, int index, const std::optional<std::int64_t>& value) {
  value.has_value() ? statement.bind(index, *value) : statement.bind(index);
}
inline void bind_at(SQLite::Statement& statement, int index, Timestamp value) {
  statement.bind(index, value.ms);
}

// prepare() and the values of ?1, ?2, ... in order.
template <typename... Values>
SQLite::Statement prepare_with(SQLite::Database& db, Sql sql, const Values&... values) {
  SQLite::Statement statement = prepare(db, sql);
  int index = 0;
  (bind_at(statement, ++index, values), ...);
  return statement;
}

// The Error for an exception of SQLite: busy, full, damaged and read-only files have their own Code.
Error sqlite_error(const std::string& doing, const SQLite::Exception& exception);

// Runs `body`, which returns a Result or Status, and turns SQLite's exceptions into its Error.
template <typename Body>
auto guarded(const std::string& doing, Body&& body) -> std::invoke_result_t<Body> {
  try {
    return std::forward<Body>(body)();
  } catch (const SQLite::Exception& exception) {
    return sqlite_error(doing, exception);
  }
}

}  // namespace cofferdam::ledger
