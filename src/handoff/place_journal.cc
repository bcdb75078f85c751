#include "handoff/place_journal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/text.h"
#include "git/git.h"
#include "handoff/beneath.h"

namespace cofferdam::handoff {
namespace {

constexpr const char* kFolder = "/cofferdam-apply";
constexpr std::size_t kMaxPlan = 256U << 20U;

Error busy(const std::string& path) {
  return make_error(Code::conflict, "something else is being applied there (" + path + ")",
                    "try again later");
}

}  // namespace

Result<bool> has_moved(const Placement& placement) {
  TRY(const Captured answer,
      git::try_git(git::call_in(placement.git_dir, {"merge-base", "--is-ancestor", placement.new_head,
                                                    placement.branch.empty() ? "HEAD" : placement.branch})));
  if (answer.status.code == 0) return true;
  if (answer.status.code == 1) return false;
  return make_error(Code::io, "git merge-base: " + git::first_line(answer.err));
}

Result<PlaceJournal> PlaceJournal::lock(const std::string& path) {
  for (int tries = 0; tries < 100; ++tries) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("cannot make " + path, errno);
    auto folder = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    auto lock = open_file(path + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!folder || !lock) {
      if (exists(path)) return !folder ? std::move(folder).error() : std::move(lock).error();
      continue;  // whoever had it is just done
    }
    TRY(const bool taken, try_lock(lock->get()));
    if (!taken) return busy(path);
    if (is_still_at(lock->get(), path + "/lock")) {
      return PlaceJournal(path, *std::move(folder), *std::move(lock));
    }
  }
  return busy(path);
}

Result<PlaceJournal> PlaceJournal::open(const std::string& git_dir, std::string* mended) {
  TRY(PlaceJournal journal, lock(git_dir + kFolder));
  TRY(*mended, journal.mend());
  for (const char* folder : {"/new", "/old"}) {
    TRY_VOID(remove_tree(journal.path_ + folder));
    TRY_VOID(make_new_dir(journal.path_ + folder));
  }
  return journal;
}

Result<std::optional<PlaceJournal>> PlaceJournal::find(const std::string& git_dir, std::string* mended) {
  using Found = std::optional<PlaceJournal>;
  if (!exists(git_dir + kFolder)) return Found{};
  TRY(PlaceJournal journal, lock(git_dir + kFolder));
  TRY(*mended, journal.mend());
  return Found(std::move(journal));
}

Status PlaceJournal::begin(const Placement& placement) const {
  TRY_VOID(write_file_atomic(path_ + "/plan", encode_placement(placement)));
  if (::fsync(folder_.get()) != 0) return sys_error("fsync " + path_, errno);
  return {};
}

// The lock is a second name of a file of ours, so that it can be told from somebody else's.
Status PlaceJournal::lock_index(const Placement& placement) const {
  TRY_VOID(write_file_atomic(path_ + "/index-lock", ""));
  const std::string lock = placement.git_dir + "/index.lock";
  if (::link((path_ + "/index-lock").c_str(), lock.c_str()) == 0) return {};
  if (errno != EEXIST) return sys_error("cannot make " + lock, errno);
  return make_error(Code::conflict, lock + " exists: another git is at work there",
                    "wait for it; if there is none, remove that file");
}

bool PlaceJournal::owns_index_lock(const Placement& placement) const {
  auto own = open_file(path_ + "/index-lock", O_RDONLY | O_NOFOLLOW);
  return own && is_still_at(own->get(), placement.git_dir + "/index.lock");
}

Status PlaceJournal::finish_index(const Placement& placement) const {
  if (!owns_index_lock(placement)) return {};  // it was given back already
  if (exists(index()) && ::rename(index().c_str(), (placement.git_dir + "/index").c_str()) != 0) {
    return sys_error("cannot put the index in place", errno);
  }
  if (::unlink((placement.git_dir + "/index.lock").c_str()) != 0) return sys_error("index.lock", errno);
  return {};
}

Status PlaceJournal::undo_file(const Placement& placement, int work_tree, std::size_t number) const {
  const PlaceFile& file = placement.files[number];
  const bool is_out = file.kind != PlaceKind::absent && !exists(path_ + "/" + new_name(number));
  const bool had_one = exists(path_ + "/" + old_name(number));
  if (is_out) {
    TRY(const std::string there, fingerprint_at(work_tree, file.path));
    if (there == file.becomes) {
      // Back to where it came from, not away: an undo that is broken off finds it there, and does not take
      // what the user has put there since for ours.
      TRY(const UniqueFd parent, open_parent(work_tree, file.path));
      if (::renameat(parent.get(), name_in(file.path).c_str(), fd(), new_name(number).c_str()) != 0) {
        return sys_error("cannot remove " + printable(file.path, 500), errno);
      }
      if (!had_one) remove_empty_parents(work_tree, file.path);
    }
  }
  if (!had_one) return {};
  TRY(const UniqueFd parent, make_parent(work_tree, file.path));
  return move_beneath(fd(), old_name(number), work_tree, file.path);
}

Status PlaceJournal::undo(const Placement& placement) const {
  TRY(const UniqueFd work_tree, open_file(placement.work_tree, O_RDONLY | O_DIRECTORY));
  Status first;
  for (std::size_t i = placement.files.size(); i-- > 0;) {
    Status undone = undo_file(placement, work_tree.get(), i);
    if (undone || !first) continue;
    Error error = std::move(undone).error().with("could not put everything back");
    error.hint = fmt::format("what was there is in {}/old; put it back and remove that folder", path_);
    first = std::move(error);
  }
  if (owns_index_lock(placement)) ::unlink((placement.git_dir + "/index.lock").c_str());
  return first;
}

Result<std::string> PlaceJournal::mend() const {
  if (!exists(path_ + "/plan")) return std::string();
  TRY(const std::string text, read_file(path_ + "/plan", kMaxPlan));
  TRY(const Placement placement, decode_placement(text));
  TRY(const bool moved, has_moved(placement));
  if (moved) {
    TRY_VOID(finish_index(placement));
  } else {
    TRY_VOID(undo(placement));
  }
  if (::unlink((path_ + "/plan").c_str()) != 0) return sys_error(path_ + "/plan", errno);
  return fmt::format("the application of {} that was broken off has been {}", placement.attempt_id,
                     moved ? "finished" : "undone");
}

Status PlaceJournal::remove() {
  // The plan first: without it there is nothing to be undone, and half a journal must never be taken for a
  // whole one.
  if (::unlink((path_ + "/plan").c_str()) != 0 && errno != ENOENT) return sys_error(path_ + "/plan", errno);
  TRY_VOID(remove_tree(path_));
  lock_.reset();
  return {};
}

}  // namespace cofferdam::handoff
