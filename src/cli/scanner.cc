#include "cli/scanner.h"

#include <fmt/core.h>

#include "base/io.h"

namespace cofferdam::cli {

std::size_t DocumentScanner::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !complete_) complete_ = step(bytes[used++]);
  return used;
}

// Whether the document ends with this byte.
bool DocumentScanner::step(char byte) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (byte == '\\') {
      escaped_ = true;
    } else if (byte == '"') {
      in_string_ = false;
    }
    return false;
  }
  if (bare_) return byte == '\n';
  switch (byte) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
      return false;
    case '{':
    case '[':
      started_ = true;
      ++depth_;
      return false;
    case '}':
    case ']':
      started_ = true;
      return --depth_ <= 0;
    case '"':
      if (started_) {
        in_string_ = true;
        return false;
      }
      break;
    default:
      break;
  }
  if (!started_) bare_ = started_ = true;
  return false;
}

Result<Document> read_document(int fd, std::size_t max_bytes) {
  constexpr std::size_t kChunk = 64U << 10U;
  DocumentScanner scanner;
  Document document;
  while (!scanner.complete()) {
    TRY(const bool readable, wait_readable(fd, -1));
    if (!readable) continue;
    bool would_block = false;
    TRY(const std::string bytes, read_some(fd, kChunk, &would_block));
    if (bytes.empty() && !would_block) break;
    const std::size_t used = scanner.feed(bytes);
    document.text.append(bytes, 0, used);
    document.leftover = bytes.substr(used);
    if (document.text.size() > max_bytes) {
      return make_error(Code::usage, fmt::format("the document is larger than {} bytes", max_bytes));
    }
  }
  return document;
}

}  // namespace cofferdam::cli
