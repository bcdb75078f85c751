// A Placement as one JSON document, for the process that carries it out and for the plan of its journal.
// Paths are hexadecimal: they are any bytes.
#include <fmt/core.h>

#include "contract/json.h"
#include "handoff/place.h"

namespace cofferdam::handoff {
namespace {

using contract::Json;
using contract::ObjectReader;

constexpr std::size_t kMaxFiles = 200'000;
constexpr std::size_t kMaxBytes = 512U << 20U;

std::string to_hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 15U]);
  }
  return out;
}

std::optional<std::string> from_hex(const std::string& text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

std::string bytes_of(ObjectReader* in, const char* key, std::size_t max_bytes) {
  auto bytes = from_hex(in->text(key, {0, max_bytes * 2}));
  if (!bytes) in->fail(key, "not hexadecimal");
  return bytes.value_or("");
}

PlaceKind kind_of(std::size_t choice) {
  constexpr PlaceKind kKinds[] = {PlaceKind::absent, PlaceKind::file, PlaceKind::executable, PlaceKind::link};
  return kKinds[choice];
}

PlaceFile file_of(ObjectReader in) {
  PlaceFile file;
  file.path = bytes_of(&in, "path", 4096);
  file.kind = kind_of(in.choice("kind", {"-", "f", "x", "l"}));
  file.offset = in.integer("offset", 0, 1ULL << 50U);
  file.size = in.integer("size", 0, 2ULL << 30U);
  file.mode = in.text("mode", {1, 6});
  file.id = in.text("id", {40, 64});
  file.becomes = in.text("becomes", {1, 65});
  file.known = in.texts("known", 0, 16, {1, 65});
  file.known_in_index = in.texts("known_in_index", 0, 16, {1, 80});
  in.finish();
  return file;
}

}  // namespace

std::string encode_placement(const Placement& placement) {
  Json files = Json::array();
  for (const PlaceFile& file : placement.files) {
    files.push_back({{"path", to_hex(file.path)},
                     {"kind", std::string(1, static_cast<char>(file.kind))},
                     {"offset", file.offset},
                     {"size", file.size},
                     {"mode", file.mode},
                     {"id", file.id},
                     {"becomes", file.becomes},
                     {"known", file.known},
                     {"known_in_index", file.known_in_index}});
  }
  return contract::canonical({{"dry_run", placement.dry_run},
                              {"attempt_id", placement.attempt_id},
                              {"git_dir", to_hex(placement.git_dir)},
                              {"work_tree", to_hex(placement.work_tree)},
                              {"branch", to_hex(placement.branch)},
                              {"old_head", placement.old_head},
                              {"new_head", placement.new_head},
                              {"message", to_hex(placement.message)},
                              {"name", to_hex(placement.name)},
                              {"email", to_hex(placement.email)},
                              {"files", files}});
}

Result<Placement> decode_placement(std::string_view json) {
  TRY(const Json document, contract::parse_json(json, kMaxBytes));
  contract::JsonFault fault;
  ObjectReader in(document, "$", &fault);
  Placement placement;
  placement.dry_run = in.boolean("dry_run");
  placement.attempt_id = in.text("attempt_id", {1, 128});
  placement.git_dir = bytes_of(&in, "git_dir", 4096);
  placement.work_tree = bytes_of(&in, "work_tree", 4096);
  placement.branch = bytes_of(&in, "branch", 4096);
  placement.old_head = in.text("old_head", {40, 64});
  placement.new_head = in.text("new_head", {40, 64});
  placement.message = bytes_of(&in, "message", 4096);
  placement.name = bytes_of(&in, "name", 4096);
  placement.email = bytes_of(&in, "email", 4096);
  for (ObjectReader& file : in.objects("files", 0, kMaxFiles)) placement.files.push_back(file_of(file));
  in.finish();
  if (fault.failed()) return fault.error();
  return placement;
}

}  // namespace cofferdam::handoff
