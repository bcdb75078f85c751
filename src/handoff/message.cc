#include "handoff/message.h"

#include <cctype>
#include <vector>

#include "base/text.h"

namespace cofferdam::handoff {
namespace {

constexpr std::size_t kSubjectBytes = 72;
constexpr std::size_t kSummaryBytes = 16U << 10U;

// "Word-like: ..." with blanks allowed before the colon, as git-interpret-trailers(1) reads it.
bool looks_like_trailer(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 || line[at] == '-'))
    ++at;
  if (at == 0) return false;
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  return at < line.size() && line[at] == ':';
}

// Lines that git or a tool behind it would take for more than text: a trailer, the "---" that ends a message,
// a comment or scissors line, the start of a mail or of a patch.
bool means_something(std::string_view line) {
  for (std::string_view start : {"---", "#", "From ", "diff -", "Index: ", "(cherry picked from"}) {
    if (starts_with(line, start)) return true;
  }
  return looks_like_trailer(line);
}

std::vector<std::string> clean_lines(std::string_view summary) {
  std::vector<std::string> lines;
  for (std::string line : split(summary, '\n')) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.pop_back();
    if (line.empty() && (lines.empty() || lines.back().empty())) continue;
    lines.push_back(printable(line, kSummaryBytes));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// The first line as a subject: never empty, never one that starts with what means something.
std::string make_subject(const std::string& line, const std::string& attempt_id) {
  std::size_t start = line.find_first_not_of("-# \t");
  std::string subject = start == std::string::npos ? "" : line.substr(start);
  if (subject.empty()) return "Change by Cofferdam attempt " + attempt_id;
  if (subject.size() <= kSubjectBytes) return subject;
  return printable(subject, kSubjectBytes - 3) + "...";
}

}  // namespace

std::string commit_message(std::string_view summary, const std::string& attempt_id) {
  std::vector<std::string> lines = clean_lines(summary.substr(0, kSummaryBytes));
  const std::string first = lines.empty() ? "" : lines.front();
  std::string message = make_subject(first, attempt_id) + "\n";
  // A first line that had to be cut or changed is repeated in full.
  const bool whole = lines.empty() || starts_with(message, first + "\n");
  std::string body;
  for (std::size_t i = whole ? 1 : 0; i < lines.size(); ++i) {
    // Indented text is never a trailer, and ours stands in a paragraph of its own.
    if (means_something(lines[i])) body += "    ";
    body += lines[i] + "\n";
  }
  if (starts_with(body, "\n")) body.erase(0, 1);
  if (!body.empty()) message += "\n" + body;
  return message + "\nCofferdam-Attempt: " + attempt_id + "\n";
}

}  // namespace cofferdam::handoff
