#include "base/text.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace cofferdam {
namespace {

struct Decoded {
  std::uint32_t point = 0;
  std::size_t length = 0;  // 0: not UTF-8
};

Decoded decode_one(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  std::uint32_t point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    point = (point << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (overlong || surrogate || point > 0x10FFFF) return {};
  return {point, length};
}

bool is_unprintable(std::uint32_t point) {
  if (point == '\n' || point == '\t') return false;
  if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return true;
  if (point >= 0x202A && point <= 0x202E) return true;  // bidirectional embeddings and overrides
  if (point >= 0x2066 && point <= 0x2069) return true;  // bidirectional isolates
  return point == 0x200E || point == 0x200F || point == 0x061C || point == 0x2028 || point == 0x2029;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    Decoded one = decode_one(text);
    if (one.length == 0) return false;
    text.remove_prefix(one.length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    Decoded one = decode_one(text);
    const bool bad = one.length == 0 || is_unprintable(one.point);
    std::size_t length = one.length == 0 ? 1 : one.length;
    std::string_view shown = bad ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    if (out.size() + shown.size() > max_bytes) break;
    out.append(shown);
    text.remove_prefix(length);
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  const char* blank = " \t\r\n";
  std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out.append(separator);
    out.append(part);
  }
  return out;
}

bool is_object_id(std::string_view text) {
  if (text.size() != 40 && text.size() != 64) return false;
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string random_hex(std::size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    while (::getrandom(&byte, 1, 0) != 1) {
      if (errno != EINTR) std::abort();
    }
    out.push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 15U]);
  }
  return out;
}

}  // namespace cofferdam
