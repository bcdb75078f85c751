// JSON as every part of Cofferdam reads and writes it: parsed strictly and within bounds, read with the path
// of whatever is wrong, written canonically. The only header that names the JSON library; include it in .cc
// files.
//
// Nothing here throws. Errors are Code::protocol and their text starts with a JSON path ("$.clone.head:
// ..."). Thread rules: values; no global state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace cofferdam::contract {

using Json = nlohmann::json;
// Members stay in the order in which they came; looking one up is a search from the start.
using OrderedJson = nlohmann::ordered_json;

inline constexpr std::size_t kMaxJsonDepth = 32;
// The largest integer that every JSON reader holds exactly (RFC 8259, section 6).
inline constexpr std::uint64_t kMaxJsonInteger = (1ULL << 53U) - 1;

// For documents that we or an orchestrator wrote. Refuses: more than `max_bytes`, a byte order mark, trailing
// bytes, duplicate keys, nesting beyond `max_depth`, invalid UTF-8, lone surrogates, NUL (raw or escaped),
// numbers that do not fit a double, integers that do not fit 64 bits.
Result<Json> parse_json(std::string_view text, std::size_t max_bytes, std::size_t max_depth = kMaxJsonDepth);
// For event lines of agents: the same bounds, but the last of duplicate keys wins, U+0000 inside strings is
// let through and integers beyond 64 bits become doubles. What was read is hostile all the same.
Result<Json> parse_json_lenient(std::string_view text, std::size_t max_bytes,
                                std::size_t max_depth = kMaxJsonDepth);
// For documents of others that we pass on: as strict as parse_json(), but U+0000 inside strings (not in keys)
// is let through, since what programs print has it.
Result<OrderedJson> parse_json_ordered(std::string_view text, std::size_t max_bytes,
                                       std::size_t max_depth = kMaxJsonDepth);
// No white space, UTF-8 as is, members in their order.
std::string in_order(const OrderedJson& value);

// Keys sorted by bytes, no white space, UTF-8 as is. Equal values have equal bytes. Invalid UTF-8 in strings
// becomes U+FFFD.
std::string canonical(const Json& value);
// A JSON string for any bytes: as they are when they are UTF-8 without NUL and at most `max_bytes`, otherwise
// printable() of them, cut at the bound. What it yields, parse_json() accepts.
Json json_text(std::string_view bytes, std::size_t max_bytes);
// A count that every reader holds exactly: values beyond kMaxJsonInteger are written as kMaxJsonInteger.
Json json_count(std::uint64_t value);

// `$.key`, or `$["odd key"]` (printable, cut) for keys that are not plain names.
std::string json_path(std::string parent, std::string_view key);
std::string json_path(std::string parent, std::size_t index);

// The first error of one document; shared by all readers of it.
class JsonFault {
 public:
  void fail(const std::string& path, const std::string& problem, Code code = Code::protocol);
  bool failed() const { return error_.has_value(); }
  // Only when failed().
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

struct TextBounds {
  std::size_t min_bytes = 0;
  std::size_t max_bytes = 4096;
};

// For keys that need not have a value.
enum class Absent {
  only_null,  // the key must be there; null means no value
  allowed,    // the key may be missing as well
};

// Reads the members of one object, each exactly once. Errors go to the shared fault (the first one wins) and
// the reader goes on with defaults, so a decoder is one straight list of reads with one check at its end:
//
//   JsonFault fault;
//   ObjectReader in(json, "$", &fault);
//   out.name = in.text("name", {1, 64});
//   out.size = in.integer("size", 1, 4096);
//   in.finish();
//   if (fault.failed()) return fault.error();
//
// Borrows the document and the fault.
class ObjectReader {
 public:
  ObjectReader(const Json& value, std::string path, JsonFault* fault);

  const std::string& path() const { return path_; }
  // Present and not null. Does not count as reading.
  bool has(std::string_view key) const;

  std::string text(const char* key, TextBounds bounds);
  std::optional<std::string> maybe_text(const char* key, TextBounds bounds, Absent absent);
  void constant(const char* key, std::string_view expected);  // a string that can only be this
  void null(const char* key);
  std::uint64_t integer(const char* key, std::uint64_t min, std::uint64_t max);
  std::optional<std::uint64_t> maybe_integer(const char* key, std::uint64_t min, std::uint64_t max,
                                             Absent absent);
  std::optional<double> maybe_number(const char* key, double min, double max, Absent absent);
  bool boolean(const char* key);
  Timestamp timestamp(const char* key);  // as to_rfc3339() writes it
  std::optional<Timestamp> maybe_timestamp(const char* key, Absent absent);
  // Index of the value in `names`; 0 after an error.
  std::size_t choice(const char* key, const std::vector<std::string>& names);
  ObjectReader object(const char* key);
  std::optional<ObjectReader> maybe_object(const char* key, Absent absent);
  std::vector<std::string> texts(const char* key, std::size_t min_items, std::size_t max_items,
                                 TextBounds each);
  std::vector<ObjectReader> objects(const char* key, std::size_t min_items, std::size_t max_items);
  // The value as it is; a JSON null after an error.
  const Json& raw(const char* key);

  // For rules that a bound cannot say: records an error at `$...key`.
  void fail(const char* key, const std::string& problem);
  // Refuses the keys that nobody read.
  void finish();

 private:
  const Json* require(const char* key);
  const Json* look_up(const char* key, Absent absent);
  const Json* array(const char* key, std::size_t min_items, std::size_t max_items);
  std::string text_of(const Json& value, const std::string& path, TextBounds bounds);
  std::uint64_t integer_of(const Json& value, const std::string& path, std::uint64_t min, std::uint64_t max);
  Timestamp timestamp_of(const Json& value, const std::string& path);

  const Json* value_;
  std::string path_;
  JsonFault* fault_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace cofferdam::contract
