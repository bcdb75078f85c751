#include "image/lock_file.h"

#include <fmt/core.h>

#include "base/text.h"

namespace cofferdam::image {
namespace {

constexpr const char* kHeader = "cofferdam-image-lock/1";
constexpr std::size_t kMaxPackages = 2000;

// None of them may be taken for an option of apt's, or for more than one word.
bool is_word(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.~:@/=_";
  return !text.empty() && text.size() <= 300 && text.front() != '-' &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_package_name(std::string_view text) {
  return is_word(text) && text.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ~:@/=_") == std::string_view::npos;
}

bool is_agent_name(std::string_view text) {
  return is_word(text) && text.find("..") == std::string_view::npos && text.front() != '/' &&
         text.back() != '/';
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_link(const std::vector<std::string>& words) {
  if (words[1].front() == '/' || words[1].find(':') != std::string::npos) return false;
  for (const std::string& part : split(words[1], '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool take(const std::vector<std::string>& words, LockFile* out) {
  for (const std::string& word : words) {
    if (!is_word(word)) return false;
  }
  const std::string& kind = words[0];
  if (words.size() == 2 && (kind == "want" || kind == "without")) {
    (kind == "want" ? out->wanted : out->without).push_back(words[1]);
    return is_package_name(words[1]);
  }
  if (words.size() == 2 && kind == "agent") {
    out->agents.push_back(words[1]);
    return is_agent_name(words[1]);
  }
  if (words.size() == 3 && kind == "link") {
    out->links.push_back({words[1], words[2]});
    return is_link(words);
  }
  if (words.size() == 5 && kind == "package") {
    out->packages.push_back({words[1], words[2], words[3], words[4]});
    return is_package_name(words[1]) && is_package_name(words[3]) && is_digest(words[4]) &&
           out->packages.size() <= kMaxPackages;
  }
  if (words.size() == 5 && kind == "pinned") {
    out->pinned.push_back({words[1], words[2], words[3], words[4]});
    return is_agent_name(words[1]) && is_digest(words[4]);
  }
  return false;
}

bool is_pin(std::string_view line) {
  return starts_with(line, "package ") || starts_with(line, "pinned ");
}

}  // namespace

Result<LockFile> parse_lock(std::string_view text, const std::string& shown_path) {
  LockFile lock;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (number == 1) {
      if (line == kHeader) continue;
      return make_error(Code::usage, shown_path + " is not a lock of an image",
                        fmt::format("its first line has to be {}", kHeader));
    }
    if (line.empty() || line.front() == '#') continue;
    if (take(split(line, ' '), &lock)) continue;
    return make_error(Code::usage,
                      fmt::format("{}:{}: not understood: {}", shown_path, number, printable(line, 200)),
                      "docs/images.md has the format");
  }
  if (number == 0) return make_error(Code::usage, shown_path + " is empty");
  return lock;
}

std::string with_pins(std::string_view old_text, const LockFile& lock) {
  std::string out;
  for (const std::string& line : split(trim(old_text), '\n')) {
    if (is_pin(line)) continue;
    out += line;
    out += '\n';
  }
  for (const LockedPackage& one : lock.packages)
    out += fmt::format("package {} {} {} {}\n", one.name, one.version, one.architecture, one.sha256);
  for (const LockedAgent& one : lock.pinned)
    out += fmt::format("pinned {} {} {} {}\n", one.name, one.version, one.integrity, one.sha256);
  return out;
}

}  // namespace cofferdam::image
