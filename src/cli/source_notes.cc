#include "cli/source_notes.h"

#include <fmt/core.h>

#include "cli/event_facts.h"

namespace cofferdam::cli {

using contract::Json;

namespace {

std::uint64_t count_of(const Json& data, const char* key) {
  const Json& value = member(data, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::string files(std::uint64_t count, const char* what) {
  return fmt::format("{} {} file{}", count, what, count == 1 ? "" : "s");
}

const char* is_or_are(std::uint64_t count) {
  return count == 1 ? "is" : "are";
}

}  // namespace

std::vector<std::string> source_notes(const Json& source, bool taken) {
  std::vector<std::string> notes;
  const std::uint64_t dirty = count_of(source, "dirty_files");
  const std::uint64_t untracked = count_of(source, "untracked_files");
  if (!taken && dirty > 0) {
    notes.push_back(fmt::format("{} {} not part of this: --include-dirty takes {} along",
                                files(dirty, "changed"), is_or_are(dirty), dirty == 1 ? "it" : "them"));
  }
  if (!taken && untracked > 0) {
    notes.push_back(
        fmt::format("{} {} not part of this", files(untracked, "untracked"), is_or_are(untracked)));
  }
  const std::uint64_t lfs = count_of(source, "lfs_files");
  if (lfs > 0) notes.push_back(files(lfs, "LFS") + ": pointers stay pointers");
  const std::uint64_t submodules = count_of(source, "submodules");
  if (submodules > 0) {
    notes.push_back(fmt::format("{} submodule{} {} not entered", submodules, submodules == 1 ? "" : "s",
                                is_or_are(submodules)));
  }
  if (member(source, "shallow") == Json(true)) notes.emplace_back("the repository is a shallow clone");
  return notes;
}

std::optional<std::string> base_note(const Json& cloned) {
  const std::string base = text_of(member(cloned, "base"));
  if (base == text_of(member(cloned, "head"))) return std::nullopt;
  return fmt::format("uncommitted changes are part of this, as the commit {}", base.substr(0, 12));
}

}  // namespace cofferdam::cli
