#include "image/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::image {
namespace {

constexpr std::string_view kPrefix = "sha256:";
constexpr std::size_t kDigits = 64;
constexpr std::size_t kLeastDigits = 8;
constexpr std::size_t kMaxManifest = 512U << 20U;
constexpr std::size_t kMaxAbout = 64U << 10U;
constexpr std::size_t kMaxFrom = 1024;
constexpr int kMaxTries = 100;

std::string images_folder(const std::string& state_dir) {
  return state_dir + "/images";
}

std::string folder_of(const std::string& state_dir, const std::string& id) {
  return images_folder(state_dir) + "/" + id.substr(kPrefix.size());
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string> names_of(const std::string& state_dir) {
  auto names = list_dir(images_folder(state_dir));
  return names ? *std::move(names) : std::vector<std::string>{};
}

std::string short_id(const std::string& id) {
  return id.substr(0, kPrefix.size() + 12);
}

Error not_there(const std::string& id) {
  return make_error(Code::not_found, "there is no image " + id,
                    "`cofferdam image list` shows which there are; make it with `cofferdam image build` or "
                    "`cofferdam image import`");
}

Error changed(const std::string& id, const std::string& what) {
  return make_error(Code::denied,
                    fmt::format("the image {} is not what it was made as: {}", short_id(id), what),
                    fmt::format("`cofferdam image remove {}` and make it again", short_id(id)));
}

Status check_content(const std::string& folder, const std::string& id) {
  auto recorded = read_file(folder + "/manifest", kMaxManifest);
  if (!recorded) return changed(id, recorded.error().what);
  if (sha256_hex(*recorded) != id.substr(kPrefix.size())) return changed(id, "its manifest has been changed");
  auto found = manifest_of(folder + "/tree");
  if (!found) return changed(id, found.error().what);
  if (*found == *recorded) return {};
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> paths = differences(*recorded, *found, kShown + 1);
  std::string text = join(
      {paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), kShown))}, ", ");
  if (paths.size() > kShown) text += " and more";
  return changed(id, text);
}

// The lock first: nobody removes the folder from then on.
Result<UniqueFd> lock_shared(const std::string& folder, const std::string& id) {
  const std::string path = folder + kUseFile;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto lock = open_file(path, O_RDWR | O_NOFOLLOW);
    if (!lock) return not_there(id);
    TRY_VOID(lock_waiting(lock->get(), LOCK_SH, path));
    if (is_still_at(lock->get(), path)) return *std::move(lock);
  }
  return not_there(id);
}

// What stat(2) says now, behind a comparison of every byte if that is not what it said then. Read before the
// comparison: what is changed meanwhile shows at the next use.
Result<StatFacts> check_tree(const std::string& folder, const std::string& id, bool always_content) {
  auto facts = stat_of(folder + "/tree");
  if (!facts) return changed(id, facts.error().what);
  constexpr std::size_t kMaxDigest = 128;
  const auto recorded = read_file(folder + "/stat", kMaxDigest);
  const bool same = recorded && trim(*recorded) == facts->sha256;
  if (same && !always_content) return facts;
  TRY_VOID(check_content(folder, id));
  if (!same) TRY_VOID(write_file_atomic(folder + "/stat", facts->sha256 + "\n"));
  return facts;
}

std::string about_text(const std::string& from, const StatFacts& facts) {
  return contract::canonical({{"created_at", to_rfc3339(now())},
                              {"from", contract::json_text(from, kMaxFrom)},
                              {"entries", contract::json_count(facts.entries)},
                              {"bytes", contract::json_count(facts.bytes)}});
}

// Ours, and only for people: what cannot be read is left out.
void read_about(const std::string& folder, ImageEntry* entry) {
  auto text = read_file(folder + "/about", kMaxAbout);
  if (!text) return;
  auto json = contract::parse_json(*text, kMaxAbout);
  if (!json) return;
  contract::JsonFault fault;
  contract::ObjectReader in(*json, "$", &fault);
  entry->created_at = in.timestamp("created_at");
  entry->from = in.text("from", {0, 4 * kMaxFrom});
  entry->entries = in.integer("entries", 0, contract::kMaxJsonInteger);
  entry->bytes = in.integer("bytes", 0, contract::kMaxJsonInteger);
}

}  // namespace

bool is_image_id(std::string_view text) {
  return text.size() == kPrefix.size() + kDigits && starts_with(text, kPrefix) &&
         is_hex(text.substr(kPrefix.size()));
}

Result<std::string> find_image(const std::string& state_dir, const std::string& text) {
  const std::string digits = starts_with(text, kPrefix) ? text.substr(kPrefix.size()) : text;
  if (digits.size() < kLeastDigits || digits.size() > kDigits || !is_hex(digits)) {
    return make_error(Code::usage, "\"" + printable(text, 100) + "\" is not an image",
                      "`cofferdam image list` shows them; 8 digits are enough");
  }
  std::vector<std::string> found;
  for (const std::string& name : names_of(state_dir)) {
    if (name.size() == kDigits && is_hex(name) && starts_with(name, digits)) found.push_back(name);
  }
  if (found.size() > 1) {
    return make_error(Code::usage, fmt::format("{} images begin with {}", found.size(), digits),
                      "give more digits");
  }
  if (found.empty()) return not_there(text);
  return std::string(kPrefix) + found.front();
}

Result<ImageUse> use_image(const std::string& state_dir, const std::string& id) {
  if (!is_image_id(id)) return make_error(Code::usage, "\"" + printable(id, 100) + "\" is not an image");
  const std::string folder = folder_of(state_dir, id);
  TRY(UniqueFd lock, lock_shared(folder, id));
  TRY(StatFacts facts, check_tree(folder, id, false));
  mark_use(lock.get());
  return ImageUse{id, folder + "/tree", std::move(facts), std::move(lock)};
}

Status verify_image(const std::string& state_dir, const std::string& id) {
  const std::string folder = folder_of(state_dir, id);
  TRY(const UniqueFd lock, lock_shared(folder, id));
  TRY(const StatFacts facts, check_tree(folder, id, true));
  return {};
}

Result<std::vector<ImageEntry>> list_images(const std::string& state_dir) {
  constexpr std::int64_t kNanosecondsPerMs = 1'000'000;
  std::vector<ImageEntry> entries;
  for (const std::string& name : names_of(state_dir)) {
    const std::string folder = images_folder(state_dir) + "/" + name;
    if (name.size() != kDigits || !is_hex(name) || !is_own_folder(folder)) continue;
    ImageEntry entry;
    entry.id = std::string(kPrefix) + name;
    read_about(folder, &entry);
    entry.last_use = Timestamp{last_use_ns(folder) / kNanosecondsPerMs};
    entry.in_use = !lock_unused(folder).has_value();
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const ImageEntry& left, const ImageEntry& right) {
    return left.created_at.ms > right.created_at.ms;
  });
  return entries;
}

Status remove_image(const std::string& state_dir, const std::string& id) {
  const std::string folder = folder_of(state_dir, id);
  if (!is_own_folder(folder)) return not_there(id);
  const std::string gone = images_folder(state_dir) + "/" + kGonePrefix + random_hex(8);
  {
    const std::optional<UniqueFd> lock = lock_unused(folder);
    if (!lock.has_value()) {
      return make_error(Code::conflict, "the image " + short_id(id) + " is in use",
                        "wait for the attempts that run in it");
    }
    if (::rename(folder.c_str(), gone.c_str()) != 0) return sys_error("cannot remove " + folder, errno);
  }
  return remove_tree(gone);
}

Status remove_image_leftovers(const std::string& state_dir) {
  for (const std::string& name : names_of(state_dir)) {
    if (!starts_with(name, kNewPrefix) && !starts_with(name, kGonePrefix)) continue;
    TRY(const bool removed, remove_leftover(images_folder(state_dir) + "/" + name));
    (void)removed;  // somebody is at it
  }
  return {};
}

Result<NewImage> NewImage::create(const std::string& state_dir) {
  TRY_VOID(make_dirs(images_folder(state_dir)));
  TRY_VOID(remove_image_leftovers(state_dir));
  TRY(Nursery nursery, Nursery::create(images_folder(state_dir)));
  NewImage made(std::move(nursery));
  made.state_dir_ = state_dir;
  TRY_VOID(make_new_dir(made.made_));
  TRY_VOID(make_new_dir(made.tree(), 0755));
  // The umask is the caller's.
  if (::chmod(made.tree().c_str(), 0755) != 0) return sys_error("chmod " + made.tree(), errno);
  return made;
}

Result<std::string> NewImage::finish(const std::string& from) {
  TRY(const StatFacts facts, stat_of(tree()));
  TRY(const std::string manifest, manifest_of(tree()));
  std::string id(kPrefix);
  id += sha256_hex(manifest);
  TRY_VOID(write_file_atomic(made_ + "/manifest", manifest));
  TRY_VOID(write_file_atomic(made_ + "/stat", facts.sha256 + "\n"));
  TRY_VOID(write_file_atomic(made_ + "/about", about_text(from, facts)));
  TRY_VOID(write_file_atomic(made_ + kUseFile, ""));
  const std::string folder = folder_of(state_dir_, id);
  if (::rename(made_.c_str(), folder.c_str()) == 0) return id;
  if (errno != ENOTEMPTY && errno != EEXIST) return sys_error("cannot put the image in place", errno);
  TRY_VOID(verify_image(state_dir_, id));
  return id;
}

}  // namespace cofferdam::image
