// The form in which boxes report: fields that end with NUL, since a path may hold any other byte. What comes
// from a box is hostile: every read is strict and bounded by what is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cofferdam::handoff {

class RecordReader {
 public:
  // `name` is for messages. `bytes` must outlive the reader.
  RecordReader(std::string_view bytes, std::string name) : rest_(bytes), name_(std::move(name)) {}

  Result<std::string_view> text();
  Status literal(std::string_view expected);
  Result<std::uint64_t> number();  // decimal, canonical, at most 18 digits
  Result<std::string> object_id();
  Result<std::string_view> bytes(std::uint64_t count);  // raw, without a NUL behind them
  Status end();                                         // "end", and nothing behind it
  bool next_is(std::string_view expected) const;        // does not consume
  Error broken(const std::string& why) const;           // Code::protocol

 private:
  std::string_view rest_;
  std::string name_;
};

// An optional "refused" group behind the header: reason, path. The error that it means; the reasons of bounds
// are Code::exhausted, all others Code::denied.
Status check_refusal(RecordReader* reader);

}  // namespace cofferdam::handoff
