// Columns for people. Cells are made printable and one line; the last column is never padded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::cli {

// printable() without line breaks and tabs: for cells, file names, anything that must stay on its line.
std::string one_line(std::string_view text, std::size_t max_bytes = 512);
// Width on a terminal, taken as one column per character.
std::size_t display_width(std::string_view utf8);
// Every line ends with a newline; columns are two spaces apart.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
// "5s", "3m", "2h", "4d"
std::string short_age(long long ms);
// "1.5 GiB", "640 KiB", "12 B"
std::string short_bytes(unsigned long long bytes);

}  // namespace cofferdam::cli
