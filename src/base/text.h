// Small text helpers. All are total: any byte sequence is a valid input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam {

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view text);
// For terminals and commit messages: invalid UTF-8, control characters (but newline and tab) and the
// bidirectional overrides and isolates (UAX #9) become U+FFFD; at most `max_bytes`, cut at a character.
std::string printable(std::string_view text, std::size_t max_bytes);
std::vector<std::string> split(std::string_view text, char separator);  // "a\0b\0" with '\0' gives {a, b}
std::string_view trim(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// 40 or 64 lower-case hexadecimal digits: a full git object id, never a name or an abbreviation.
bool is_object_id(std::string_view text);
// `bytes` random bytes from getrandom(2) as lower-case hexadecimal.
std::string random_hex(std::size_t bytes);

}  // namespace cofferdam
