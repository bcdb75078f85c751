#include "attempt/take_work.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/text.h"
#include "handoff/keep.h"

namespace cofferdam::attempt {
namespace {

Error box_failed(const std::string& kind, const sandbox::BoxOutput& output) {
  return make_error(Code::internal, fmt::format("the {} box ended with {}: {}", kind,
                                                output.status.describe(), printable(trim(output.err), 500)));
}

// What create() has not finished is none. Of a collection that was broken off its folder may be left.
Result<handoff::AttemptStore> open_store(const WorkSource& from) {
  const std::string path = store_path(from.attempt_dir);
  auto opened = handoff::AttemptStore::open(path);
  if (!opened) {
    TRY_VOID(remove_tree(path));
    return handoff::AttemptStore::create(path, from.cloned.identity, from.cloned.packs);
  }
  TRY_VOID(handoff::remove_incoming(path));
  return opened;
}

Status archive_files(const WorkSource& from, const sandbox::Interrupt& interrupt, const std::string& path) {
  ::unlink(path.c_str());  // half of one, of a handoff that was broken off
  TRY(const UniqueFd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  handoff::KeepInput wanted;
  wanted.overlay = from.overlay;
  wanted.work_bytes = from.invocation->limits.work_bytes;
  wanted.work_inodes = from.invocation->limits.work_inodes;
  wanted.archive_fd = file.get();
  TRY(const sandbox::BoxOutput output,
      sandbox::run_box(from.boxes, from.storage, handoff::keep_profile(wanted), 4096, interrupt));
  if (!output.status.success()) return box_failed("keep", output);
  return {};
}

}  // namespace

std::string store_path(const std::string& attempt_dir) {
  return attempt_dir + "/store.git";
}

Result<handoff::Snapshot> take_snapshot(const WorkSource& from, const sandbox::Interrupt& interrupt) {
  handoff::SnapshotInput wanted;
  wanted.base_tree = from.cloned.identity.tree;
  wanted.overlay = from.overlay;
  wanted.work_bytes = from.invocation->limits.work_bytes;
  wanted.work_inodes = from.invocation->limits.work_inodes;
  TRY(sandbox::BoxOutput output, sandbox::run_box(from.boxes, from.storage, handoff::snapshot_profile(wanted),
                                                  handoff::kMaxSnapshotRecord, interrupt));
  auto snapshot = handoff::decode_snapshot(output.out);
  if (!snapshot && snapshot.error().code == Code::protocol && !output.status.success())
    return box_failed("snapshot", output);
  return snapshot;
}

Result<CollectedWork> collect_work(const WorkSource& from, const std::string& tree,
                                   const sandbox::Interrupt& interrupt) {
  TRY(handoff::AttemptStore store, open_store(from));
  failpoint("store-made");
  TRY(handoff::Incoming incoming, store.open_incoming());
  handoff::CollectInput wanted;
  wanted.base_tree = from.cloned.identity.tree;
  wanted.tree = tree;
  wanted.work_bytes = from.invocation->limits.work_bytes;
  wanted.work_inodes = from.invocation->limits.work_inodes;
  wanted.pack_fd = incoming.pack.get();
  wanted.index_fd = incoming.index.get();
  TRY(sandbox::BoxOutput output, sandbox::run_box(from.boxes, from.storage, handoff::collect_profile(wanted),
                                                  handoff::kMaxCollectRecord, interrupt));
  auto collected = handoff::decode_collect(output.out);
  if (!collected && collected.error().code == Code::protocol && !output.status.success())
    return box_failed("collect", output);
  if (!collected) return collected.error();
  std::string pack;
  if (collected->objects > 0) {
    TRY(pack, store.adopt(std::move(incoming)));
  }
  failpoint("pack-adopted");
  return CollectedWork{std::move(store), *std::move(collected), std::move(pack)};
}

Result<std::string> commit_work(const WorkSource& from, const handoff::AttemptStore& store,
                                const std::string& tree, const std::string& parent,
                                const std::string& message) {
  handoff::CommitInput wanted;
  wanted.tree = tree;
  wanted.parent = parent;
  wanted.author_name = from.host.config.author_name;
  wanted.author_email = from.host.config.author_email;
  wanted.time = now();
  wanted.message = message;
  wanted.sign_key = from.host.config.sign_key;
  auto id = store.commit(wanted);
  if (id || wanted.sign_key.empty()) return id;
  wanted.sign_key.clear();  // the work is kept all the same; publish() sees that it is not signed
  return store.commit(wanted);
}

Error keep_files(const WorkSource& from, const sandbox::Interrupt& interrupt, Error why) {
  const std::string path = from.attempt_dir + "/refused.tar";
  const Status kept = archive_files(from, interrupt, path);
  if (kept) {
    why.code = Code::denied;
    why.what.append("; its files are kept in ").append(path);
  } else {
    why.what.append("; its files could not be kept: ").append(kept.error().line());
  }
  return why;
}

}  // namespace cofferdam::attempt
