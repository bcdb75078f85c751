#include "cli/image_text.h"

#include <fmt/core.h>

#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {

std::string images_text(const std::vector<image::ImageEntry>& images, Timestamp at) {
  if (images.empty()) return "no images; `cofferdam image build` makes one\n";
  std::vector<std::vector<std::string>> rows;
  rows.reserve(images.size());
  for (const image::ImageEntry& one : images) {
    rows.push_back({one.id, short_bytes(one.bytes), fmt::format("{}", one.entries),
                    short_age(at.ms - one.created_at.ms), one.in_use ? "yes" : "no", one_line(one.from, 80)});
  }
  return table({"IMAGE", "BYTES", "FILES", "AGE", "IN USE", "FROM"}, rows);
}

std::string images_json(const std::vector<image::ImageEntry>& images) {
  constexpr std::size_t kMaxText = 4096;
  contract::Json out = contract::Json::array();
  for (const image::ImageEntry& one : images) {
    out.push_back({{"id", one.id},
                   {"from", contract::json_text(one.from, kMaxText)},
                   {"created_at", to_rfc3339(one.created_at)},
                   {"last_use", to_rfc3339(one.last_use)},
                   {"bytes", contract::json_count(one.bytes)},
                   {"entries", contract::json_count(one.entries)},
                   {"in_use", one.in_use}});
  }
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
