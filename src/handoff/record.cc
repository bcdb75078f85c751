#include "handoff/record.h"

#include <fmt/core.h>

#include <array>

#include "base/text.h"

namespace cofferdam::handoff {
namespace {

struct Refusal {
  const char* reason;  // as the scripts say it
  Code code;
  const char* what;
};

constexpr std::array kRefusals = {
    Refusal{"file-size", Code::exhausted, "a file is larger than the bound"},
    Refusal{"depth", Code::exhausted, "folders are nested deeper than the bound"},
    Refusal{"path-length", Code::exhausted, "a path is longer than the bound"},
    Refusal{"pack-bytes", Code::exhausted, "the pack is larger than the bound"},
    Refusal{"inflated-bytes", Code::exhausted, "the objects are larger than the bound when unpacked"},
    Refusal{"paths", Code::exhausted, "more files were changed than the bound allows"},
    Refusal{"listing", Code::exhausted, "the changes cannot be listed within the bounds"},
    Refusal{"blocking-file", Code::denied, "a FIFO lies where git reads attributes or ignore rules"},
    Refusal{"pack", Code::denied, "git refused the objects"},
    Refusal{"tree", Code::denied, "the objects do not hold the tree"},
};

}  // namespace

Error RecordReader::broken(const std::string& why) const {
  return make_error(Code::protocol, fmt::format("the {} box did not report properly: {}", name_, why));
}

Result<std::string_view> RecordReader::text() {
  const std::size_t at = rest_.find('\0');
  if (at == std::string_view::npos) return broken("the record ends early");
  std::string_view field = rest_.substr(0, at);
  rest_.remove_prefix(at + 1);
  return field;
}

Status RecordReader::literal(std::string_view expected) {
  TRY(std::string_view field, text());
  if (field == expected) return {};
  return broken(fmt::format("expected '{}', found '{}'", expected, printable(field, 80)));
}

Result<std::uint64_t> RecordReader::number() {
  TRY(std::string_view field, text());
  const bool digits = !field.empty() && field.find_first_not_of("0123456789") == std::string_view::npos;
  const bool canonical = field == "0" || (digits && field.front() != '0');
  if (!digits || !canonical || field.size() > 18)
    return broken("not a number: '" + printable(field, 40) + "'");
  std::uint64_t value = 0;
  for (char digit : field) value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  return value;
}

Result<std::string> RecordReader::object_id() {
  TRY(std::string_view field, text());
  if (!is_object_id(field)) return broken("not an object id: '" + printable(field, 80) + "'");
  return std::string(field);
}

Result<std::string_view> RecordReader::bytes(std::uint64_t count) {
  if (count > rest_.size()) return broken("the record ends early");
  const std::string_view out = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return out;
}

Status RecordReader::end() {
  TRY_VOID(literal("end"));
  if (!rest_.empty()) return broken("bytes behind the record");
  return {};
}

bool RecordReader::next_is(std::string_view expected) const {
  return rest_.size() > expected.size() && starts_with(rest_, expected) && rest_[expected.size()] == '\0';
}

Status check_refusal(RecordReader* reader) {
  if (!reader->next_is("refused")) return {};
  TRY_VOID(reader->literal("refused"));
  TRY(std::string_view reason, reader->text());
  TRY(std::string_view detail, reader->text());
  TRY_VOID(reader->end());
  for (const Refusal& refusal : kRefusals) {
    if (reason != refusal.reason) continue;
    std::string what = refusal.what;
    if (!detail.empty()) what += ": " + printable(detail, 500);
    return make_error(refusal.code, what);
  }
  return reader->broken("refused for an unknown reason: '" + printable(reason, 80) + "'");
}

}  // namespace cofferdam::handoff
