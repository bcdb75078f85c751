// What Cofferdam keeps on the disk, for `df`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace cofferdam::cli {

struct UsedPack {
  std::string head;
  std::string repository;  // empty when not on record
  std::uint64_t bytes = 0;
  Timestamp last_use;
  bool in_use = false;
  std::vector<std::string> attempts;  // whose stores borrow from it
};

struct UsedFolder {
  std::string attempt_id;
  std::uint64_t bytes = 0;
};

struct UsedImage {
  std::string id;
  std::string from;
  std::uint64_t bytes = 0;
  Timestamp last_use;
  bool in_use = false;
};

struct DiskUsage {
  std::string state_dir;  // empty: nothing was ever run here
  std::uint64_t ledger_bytes = 0;
  std::uint64_t vault_bytes = 0;
  std::uint64_t max_bytes = 0;  // cache.max_bytes
  std::uint64_t attempts_bytes = 0;
  std::uint64_t images_bytes = 0;
  std::vector<UsedPack> packs;
  std::vector<UsedFolder> folders;
  std::vector<UsedImage> images;
};

std::string disk_usage_text(const DiskUsage& usage, Timestamp at);
std::string disk_usage_json(const DiskUsage& usage);

}  // namespace cofferdam::cli
