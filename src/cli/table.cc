#include "cli/table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace cofferdam::cli {

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string line = printable(text, max_bytes);
  std::replace_if(
      line.begin(), line.end(), [](char byte) { return byte == '\n' || byte == '\t'; }, ' ');
  return line;
}

std::size_t display_width(std::string_view utf8) {
  const auto is_start = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), is_start));
}

namespace {

std::string table_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const std::string cell = one_line(cells[column]);
    line += cell;
    if (column + 1 < cells.size()) line.append(widths[column] - display_width(cell) + 2, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(head.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    widths.resize(std::max(widths.size(), cells.size()), 0);
    for (std::size_t column = 0; column < cells.size(); ++column) {
      widths[column] = std::max(widths[column], display_width(one_line(cells[column])));
    }
  };
  measure(head);
  for (const auto& row : rows) measure(row);
  std::string out = head.empty() ? "" : table_line(head, widths);
  for (const auto& row : rows) out += table_line(row, widths);
  return out;
}

std::string short_age(long long ms) {
  const long long seconds = std::max(0LL, ms / 1000);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86'400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

std::string short_bytes(unsigned long long bytes) {
  constexpr unsigned long long kUnit = 1024;
  if (bytes < kUnit) return fmt::format("{} B", bytes);
  if (bytes < kUnit * kUnit) return fmt::format("{} KiB", bytes / kUnit);
  if (bytes < kUnit * kUnit * kUnit) return fmt::format("{} MiB", bytes / (kUnit * kUnit));
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kUnit * kUnit * kUnit));
}

}  // namespace cofferdam::cli
