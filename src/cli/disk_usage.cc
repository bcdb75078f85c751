#include "cli/disk_usage.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

using contract::Json;

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kShownFolders = 20;

std::uint64_t total(const DiskUsage& usage) {
  return usage.ledger_bytes + usage.vault_bytes + usage.attempts_bytes + usage.images_bytes;
}

std::string needed_by(const UsedPack& pack) {
  std::string out = pack.in_use ? "a running attempt" : "";
  if (!pack.attempts.empty()) {
    if (!out.empty()) out += ", ";
    out += pack.attempts.front();
    if (pack.attempts.size() > 1) out += fmt::format(" and {} more", pack.attempts.size() - 1);
  }
  return out.empty() ? "nobody" : out;
}

std::string pack_table(const DiskUsage& usage, Timestamp at) {
  if (usage.packs.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const UsedPack& pack : usage.packs) {
    rows.push_back({pack.head.substr(0, 12), short_bytes(pack.bytes), short_age(at.ms - pack.last_use.ms),
                    needed_by(pack), pack.repository.empty() ? "?" : pack.repository});
  }
  return "\n" + table({"BASE PACK", "BYTES", "LAST USE", "NEEDED BY", "REPOSITORY"}, rows);
}

std::string folder_table(const DiskUsage& usage) {
  if (usage.folders.empty()) return "";
  std::vector<UsedFolder> folders = usage.folders;
  std::stable_sort(folders.begin(), folders.end(),
                   [](const UsedFolder& left, const UsedFolder& right) { return left.bytes > right.bytes; });
  std::vector<std::vector<std::string>> rows;
  for (std::size_t index = 0; index < std::min(folders.size(), kShownFolders); ++index) {
    rows.push_back({folders[index].attempt_id, short_bytes(folders[index].bytes)});
  }
  std::string out = "\n" + table({"ATTEMPT", "BYTES"}, rows);
  if (folders.size() > kShownFolders) {
    out += fmt::format("and {} smaller ones\n", folders.size() - kShownFolders);
  }
  return out;
}

}  // namespace

std::string disk_usage_text(const DiskUsage& usage, Timestamp at) {
  if (usage.state_dir.empty()) return "nothing is kept: no attempts yet\n";
  const std::vector<std::vector<std::string>> rows = {
      {"ledger", short_bytes(usage.ledger_bytes), "every attempt's record"},
      {"attempts", short_bytes(usage.attempts_bytes),
       fmt::format("{} with work or output kept", usage.folders.size())},
      {"vault", short_bytes(usage.vault_bytes),
       fmt::format("{} base packs; those that nobody needs may take {}", usage.packs.size(),
                   short_bytes(usage.max_bytes))},
      {"images", short_bytes(usage.images_bytes),
       usage.images.empty() ? "none" : fmt::format("{}; `cofferdam image list`", usage.images.size())},
      {"total", short_bytes(total(usage)), usage.state_dir},
  };
  return table({}, rows) + pack_table(usage, at) + folder_table(usage);
}

std::string disk_usage_json(const DiskUsage& usage) {
  Json packs = Json::array();
  for (const UsedPack& pack : usage.packs) {
    packs.push_back({{"head", pack.head},
                     {"repository", contract::json_text(pack.repository, kMaxText)},
                     {"bytes", contract::json_count(pack.bytes)},
                     {"last_use", to_rfc3339(pack.last_use)},
                     {"in_use", pack.in_use},
                     {"attempts", pack.attempts}});
  }
  Json folders = Json::array();
  for (const UsedFolder& folder : usage.folders) {
    folders.push_back({{"attempt_id", contract::json_text(folder.attempt_id, kMaxText)},
                       {"bytes", contract::json_count(folder.bytes)}});
  }
  Json images = Json::array();
  for (const UsedImage& image : usage.images) {
    images.push_back({{"id", image.id},
                      {"from", contract::json_text(image.from, kMaxText)},
                      {"bytes", contract::json_count(image.bytes)},
                      {"last_use", to_rfc3339(image.last_use)},
                      {"in_use", image.in_use}});
  }
  const Json out = {
      {"state_dir", usage.state_dir.empty() ? Json(nullptr) : contract::json_text(usage.state_dir, kMaxText)},
      {"total_bytes", contract::json_count(total(usage))},
      {"ledger", {{"bytes", contract::json_count(usage.ledger_bytes)}}},
      {"attempts", {{"bytes", contract::json_count(usage.attempts_bytes)}, {"folders", std::move(folders)}}},
      {"vault",
       {{"bytes", contract::json_count(usage.vault_bytes)},
        {"max_bytes", contract::json_count(usage.max_bytes)},
        {"bases", std::move(packs)}}},
      {"images", {{"bytes", contract::json_count(usage.images_bytes)}, {"images", std::move(images)}}}};
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
