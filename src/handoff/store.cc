#include "handoff/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "git/git.h"
#include "handoff/commit_object.h"

namespace cofferdam::handoff {
namespace {

constexpr const char* kIncoming = "incoming-";

Result<std::string> read_part(const UniqueFd& fd, off_t at, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t n = ::pread(fd.get(), bytes.data(), size, at);
  if (n != static_cast<ssize_t>(size)) return make_error(Code::protocol, "a collected file is cut off");
  return bytes;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

struct Checked {
  UniqueFd fd;
  off_t size = 0;
};

Result<Checked> open_checked(const std::string& path, std::size_t min_bytes, std::string_view magic) {
  Checked file;
  TRY(file.fd, open_file(path, O_RDONLY | O_NOFOLLOW));
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0) return sys_error(path, errno);
  file.size = info.st_size;
  if (file.size < static_cast<off_t>(min_bytes)) {
    return make_error(Code::protocol, "the collect box delivered less than a pack and its index");
  }
  TRY(std::string start, read_part(file.fd, 0, magic.size()));
  if (start != magic)
    return make_error(Code::protocol, "the collect box did not deliver a pack and its index");
  return file;
}

// The pack's name: the checksum at its end, which the index must repeat (gitformat-pack(5)).
Result<std::string> check_pair(const std::string& pack_path, const std::string& index_path,
                               std::size_t hash_bytes) {
  using namespace std::string_view_literals;
  TRY(Checked pack, open_checked(pack_path, 12 + hash_bytes, "PACK\0\0\0\2"sv));
  TRY(Checked index, open_checked(index_path, 8 + 1024 + 2 * hash_bytes, "\377tOc\0\0\0\2"sv));
  const auto size = static_cast<off_t>(hash_bytes);
  TRY(std::string own, read_part(pack.fd, pack.size - size, hash_bytes));
  TRY(std::string repeated, read_part(index.fd, index.size - 2 * size, hash_bytes));
  if (own != repeated)
    return make_error(Code::protocol, "the collected index is not that of the collected pack");
  for (const Checked* file : {&pack, &index}) {
    if (::fchmod(file->fd.get(), 0444) != 0) return sys_error("fchmod", errno);
    if (::fsync(file->fd.get()) != 0) return sys_error("fsync", errno);
  }
  return hex(own);
}

Status move_into(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return sys_error("cannot put " + to + " in place", errno);
  return {};
}

Status sync_folder(const std::string& path) {
  TRY(UniqueFd fd, open_file(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return sys_error("fsync " + path, errno);
  return {};
}

Status require_ids(std::initializer_list<const std::string*> ids) {
  for (const std::string* id : ids) {
    if (!is_object_id(*id)) return make_error(Code::internal, "not a full object id: " + printable(*id, 80));
  }
  return {};
}

}  // namespace

Result<AttemptStore> AttemptStore::create(const std::string& path, const contract::CloneIdentity& identity,
                                          const contract::BasePacks& base) {
  TRY_VOID(git::create_bare(path, identity.object_format));
  // One line, one folder: a newline in it would name another (gitrepository-layout(5)).
  if (base.objects_dir.find('\n') != std::string::npos || !starts_with(base.objects_dir, "/")) {
    return make_error(Code::internal, "the vault's path cannot be named as an alternate");
  }
  if (!base.shallow.empty()) {
    // Where the base's history is cut, no git of ours looks for more (gitrepository-layout(5)).
    std::string cut;
    for (const std::string& id : base.shallow) cut.append(id).append("\n");
    TRY_VOID(write_file_atomic(path + "/shallow", cut));
  }
  TRY_VOID(write_file_atomic(path + "/objects/info/alternates", base.objects_dir + "\n"));
  return AttemptStore(path);
}

Result<AttemptStore> AttemptStore::open(const std::string& path) {
  if (!exists(path + "/objects/info/alternates"))
    return make_error(Code::not_found, "there is no store at " + path);
  return AttemptStore(path);
}

Status remove_incoming(const std::string& store_path) {
  const auto names = list_dir(store_path);
  if (!names) return {};
  for (const std::string& name : *names) {
    std::string left = store_path;
    if (starts_with(name, kIncoming)) TRY_VOID(remove_tree(left.append("/").append(name)));
  }
  return {};
}

Result<Incoming> AttemptStore::open_incoming() const {
  TRY(TempDir folder, TempDir::create(path_, kIncoming));
  TRY(UniqueFd pack, open_file(folder.path() + "/pack", O_WRONLY | O_CREAT | O_EXCL));
  TRY(UniqueFd index, open_file(folder.path() + "/index", O_WRONLY | O_CREAT | O_EXCL));
  return Incoming{std::move(folder), std::move(pack), std::move(index)};
}

Result<std::string> AttemptStore::adopt(Incoming incoming) const {
  incoming.pack.reset();
  incoming.index.reset();
  TRY(std::string config, read_file(path_ + "/config", 4096));
  const std::size_t hash_bytes = config.find("objectformat = sha256") == std::string::npos ? 20 : 32;
  const std::string pack = incoming.folder.path() + "/pack";
  const std::string index = incoming.folder.path() + "/index";
  TRY(std::string name, check_pair(pack, index, hash_bytes));
  const std::string target = path_ + "/objects/pack/pack-" + name;
  TRY_VOID(move_into(pack, target + ".pack"));
  TRY_VOID(move_into(index, target + ".idx"));  // last: git sees a pack by its index
  TRY_VOID(sync_folder(path_ + "/objects/pack"));
  return "pack-" + name;
}

void AttemptStore::remove_pack(const std::string& name) const {
  const std::string path = path_ + "/objects/pack/" + name;
  ::unlink((path + ".idx").c_str());  // first: git sees a pack by its index
  ::unlink((path + ".pack").c_str());
}

Result<std::string> AttemptStore::commit(const CommitInput& input) const {
  TRY_VOID(require_ids({&input.tree, &input.parent}));
  CommitText commit;
  commit.tree = input.tree;
  commit.parents = {input.parent};
  commit.name = input.author_name;
  commit.email = input.author_email;
  commit.time = input.time;
  commit.message = input.message;
  TRY(const std::string text, signed_commit_text(commit, input.sign_key));
  return write_commit({path_}, text);
}

Result<bool> AttemptStore::is_signed(const std::string& commit) const {
  TRY_VOID(require_ids({&commit}));
  TRY(const std::string text, git::run_git(git::call_in(path_, {"cat-file", "commit", commit})));
  return is_signed_text(text);
}

Result<std::string> AttemptStore::sign(const std::string& base, const std::string& commit,
                                       const std::string& key) const {
  TRY_VOID(require_ids({&base, &commit}));
  TRY(const std::string listed,
      git::run_git(git::call_in(path_, {"rev-list", "--reverse", commit, "^" + base})));
  if (trim(listed).empty()) return commit;
  std::string last = base;
  bool anew = false;
  for (const std::string& id : split(trim(listed), '\n')) {
    TRY(const std::string text, git::run_git(git::call_in(path_, {"cat-file", "commit", id})));
    anew = anew || !is_signed_text(text);
    if (!anew) {
      last = id;
      continue;
    }
    TRY(const std::string made, sign_commit_text(reparented_text(text, last), key));
    TRY(last, write_commit({path_}, made));
  }
  return last;
}

Result<std::string> AttemptStore::diff(const std::string& base, const std::string& commit,
                                       std::size_t max_bytes) const {
  TRY_VOID(require_ids({&base, &commit}));
  git::GitCall call = git::call_in(
      path_, {"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames",
              "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", "--full-index", base, commit});
  call.limits.out_bytes = max_bytes;
  return git::run_git(call);
}

}  // namespace cofferdam::handoff
