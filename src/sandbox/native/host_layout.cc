#include "sandbox/native/host_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <set>

#include "base/file.h"

namespace cofferdam::sandbox {

namespace {

constexpr const char* kRootNames[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
constexpr std::size_t kMostEntries = 400;

// Not there, or neither a folder, a file nor a link: nothing.
std::optional<RootEntry> look_at(const std::string& root, const std::string& name) {
  const std::string path = root + "/" + name;
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  if (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)) return RootEntry{name, {}};
  if (!S_ISLNK(info.st_mode)) return std::nullopt;
  std::array<char, 4096> text{};
  const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
  if (n <= 0) return std::nullopt;
  return RootEntry{name, std::string(text.data(), static_cast<std::size_t>(n))};
}

std::vector<RootEntry> root_entries_of(const std::string& root) {
  std::vector<RootEntry> entries;
  for (const char* name : kRootNames) {
    struct stat info {};
    const bool there = ::lstat((root + "/" + name).c_str(), &info) == 0;
    if (!there || S_ISREG(info.st_mode)) continue;
    if (auto entry = look_at(root, name)) entries.push_back(*std::move(entry));
  }
  return entries;
}

// Everything in one folder of an image but these names.
void add_all(const std::string& tree, const std::string& folder, const std::set<std::string>& except,
             std::vector<RootEntry>* out) {
  if (!is_directory(tree + "/" + folder)) return;
  auto names = list_dir(tree + "/" + folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (except.count(name) != 0) continue;
    std::string path = folder;
    if (!path.empty()) path += '/';
    path += name;
    if (auto entry = look_at(tree, path)) out->push_back(*std::move(entry));
  }
}

bool is_real_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<HostLayout> read_host_layout() {
  HostLayout layout;
  layout.root_entries = root_entries_of("");
  // What programs below /usr need to find each other: cc -> /etc/alternatives/cc, and the loader's cache.
  for (const char* name : {"alternatives", "ld.so.cache"}) {
    if (exists(std::string("/etc/") + name)) layout.etc_entries.push_back(name);
  }
  if (auto zone = read_file("/etc/localtime", 1U << 20U)) layout.time_zone = *zone;
  return layout;
}

Result<HostLayout> read_image_layout(const std::string& tree) {
  if (!is_real_folder(tree + "/usr"))
    return make_error(Code::denied, "the image has no folder /usr", "take another image");
  HostLayout layout;
  layout.source = "/image";
  layout.root_entries = root_entries_of(tree);
  // Who is who, and where names are looked up, is the box's, not the image's; what lies in its other places
  // is the box's own too (plan_box.cc).
  if (is_real_folder(tree + "/etc")) {
    add_all(tree, "etc",
            {"passwd", "passwd-", "group", "group-", "shadow", "shadow-", "gshadow", "gshadow-", "subuid",
             "subgid", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "mtab", "machine-id"},
            &layout.more);
  }
  if (is_real_folder(tree + "/opt")) add_all(tree, "opt", {"agent", "cofferdam"}, &layout.more);
  add_all(tree, "", {"usr", "bin",   "sbin", "lib",   "lib32",     "lib64",      "libx32", "etc",  "opt",
                     "dev", "proc",  "sys",  "tmp",   "home",      "root",       "run",    "var",  "boot",
                     "mnt", "media", "out",  "upper", "workspace", "lost+found", "host",   "image"},
          &layout.more);
  if (layout.more.size() > kMostEntries)
    return make_error(Code::denied, "the image has too many files in /, /etc and /opt", "take another image");
  return layout;
}

}  // namespace cofferdam::sandbox
