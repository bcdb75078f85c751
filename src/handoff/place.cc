#include "handoff/place.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "git/git.h"
#include "handoff/beneath.h"
#include "handoff/place_journal.h"

namespace cofferdam::handoff {
namespace {

using Obstacles = std::vector<Obstacle>;

git::GitCall call_on(const Placement& placement, std::vector<std::string> args) {
  return git::call_in(placement.git_dir, std::move(args));
}

// git keeps its place in a longer operation in these.
Status check_idle(const Placement& placement) {
  for (const char* name : {"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}) {
    if (!exists(placement.git_dir + "/" + name)) continue;
    return make_error(Code::conflict,
                      fmt::format("{} is in the middle of something ({})", placement.git_dir, name),
                      "finish or abort it first: git status says what it is");
  }
  return {};
}

Status check_head(const Placement& placement) {
  TRY(const Captured branch, git::try_git(call_on(placement, {"symbolic-ref", "-q", "HEAD"})));
  TRY(const std::string head, git::run_git(call_on(placement, {"rev-parse", "--verify", "HEAD"})));
  const std::string name(branch.status.success() ? trim(branch.out) : std::string_view());
  if (name == placement.branch && trim(head) == placement.old_head) return {};
  return make_error(Code::conflict, "HEAD has moved meanwhile", "run it again");
}

std::string without_status(std::string_view field) {
  // ":100644 100755 <id> <id> M": the index's half is the second mode and id.
  const std::vector<std::string> words = split(field, ' ');
  return words.size() == 5 ? words[1] + " " + words[3] : "";
}

class Placer {
 public:
  Placer(const Placement& placement, int content_fd, UniqueFd work_tree)
      : placement_(placement), content_fd_(content_fd), work_tree_(std::move(work_tree)) {
    for (std::size_t i = 0; i < placement.files.size(); ++i) by_path_[placement.files[i].path] = i;
  }

  Result<Obstacles> check() {
    TRY_VOID(check_idle(placement_));
    TRY_VOID(check_head(placement_));
    Obstacles found;
    TRY_VOID(check_index(&found));
    for (const PlaceFile& file : placement_.files) {
      TRY(const std::string there, fingerprint_at(work_tree_.get(), file.path));
      there_.push_back(there);
      if (there == file.becomes || knows(file, there)) continue;
      found.push_back(
          {"dirty", file.path,
           there == "-" ? "it was removed from the work tree" : "what is in the work tree is not committed"});
    }
    return found;
  }

  Status apply(PlaceJournal* journal) {
    Status done = stage(*journal);
    if (done) done = journal->begin(placement_);
    if (done) done = journal->lock_index(placement_);
    if (done) done = make_index(*journal);
    failpoint("apply-begun");
    if (done) done = swap(*journal);
    failpoint("apply-swapped");
    if (done) done = move_branch();
    failpoint("apply-moved");
    if (!done) {
      TRY_VOID(journal->undo(placement_));
      TRY_VOID(journal->remove());
      return done;
    }
    TRY_VOID(journal->finish_index(placement_));
    return journal->remove();
  }

 private:
  static bool knows(const PlaceFile& file, const std::string& what) {
    return std::find(file.known.begin(), file.known.end(), what) != file.known.end();
  }

  // What is staged stays staged, but for the paths of the change: there the index must be as HEAD is, or as
  // the change leaves it.
  Status check_index(Obstacles* found) {
    git::GitCall call = call_on(placement_, {"diff-index", "--cached", "--raw", "-z", "--no-renames",
                                             "--no-abbrev", "--ignore-submodules=all", placement_.old_head});
    call.limits.out_bytes = 256U << 20U;
    TRY(const std::string out, git::run_git(call));
    const std::vector<std::string> fields = split(out, '\0');
    for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
      const std::string& path = fields[i + 1];
      if (fields[i].ends_with(" U")) {
        found->push_back({"unmerged", path, "it has conflicts of a merge"});
        continue;
      }
      const auto same = by_path_.find(path);
      if (same == by_path_.end() ? !is_in_the_way(path) : index_knows(same->second, fields[i])) continue;
      found->push_back({"staged", path, "the index has something else than HEAD"});
    }
    return {};
  }

  bool index_knows(std::size_t number, const std::string& field) const {
    const std::vector<std::string>& known = placement_.files[number].known_in_index;
    return std::find(known.begin(), known.end(), without_status(field)) != known.end();
  }

  // A file in the place of a folder of the change, or the other way round.
  bool is_in_the_way(const std::string& path) const {
    const auto below = by_path_.lower_bound(path + "/");
    if (below != by_path_.end() && starts_with(below->first, path + "/")) return true;
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      if (by_path_.count(path.substr(0, at)) != 0) return true;
    }
    return false;
  }

  Result<std::string> content_of(const PlaceFile& file) const {
    std::string bytes(file.size, '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t n = ::pread(content_fd_, bytes.data() + have, bytes.size() - have,
                                static_cast<off_t>(file.offset + have));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return make_error(Code::internal, "the content of a file is cut off");
      have += static_cast<std::size_t>(n);
    }
    if (fingerprint(file.kind, bytes) != file.becomes) {
      return make_error(Code::internal, "the content of a file is not what was planned");
    }
    return bytes;
  }

  Status stage_one(const PlaceJournal& journal, std::size_t number) const {
    const PlaceFile& file = placement_.files[number];
    TRY(const std::string bytes, content_of(file));
    const std::string name = PlaceJournal::new_name(number);
    if (file.kind == PlaceKind::link) {
      if (::symlinkat(bytes.c_str(), journal.fd(), name.c_str()) != 0) return sys_error("symlink", errno);
      return {};
    }
    const mode_t mode = file.kind == PlaceKind::executable ? 0777 : 0666;  // the umask does the rest
    UniqueFd fd(::openat(journal.fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd.valid()) return sys_error("cannot write " + printable(file.path, 500), errno);
    auto written = write_all(fd.get(), bytes);
    if (!written) return std::move(written).error().with("cannot write " + printable(file.path, 500));
    return {};
  }

  Status stage(const PlaceJournal& journal) const {
    for (std::size_t i = 0; i < placement_.files.size(); ++i) {
      if (placement_.files[i].kind == PlaceKind::absent) continue;
      TRY_VOID(stage_one(journal, i));
    }
    return {};
  }

  // A copy, which git itself changes; times are not in it, so that the next git looks at the files.
  Status make_index(const PlaceJournal& journal) {
    // Under the lock now: nobody else writes it.
    Obstacles staged;
    TRY_VOID(check_head(placement_));
    TRY_VOID(check_index(&staged));
    if (!staged.empty()) return make_error(Code::conflict, "the index has changed meanwhile", "run it again");
    const std::string from = placement_.git_dir + "/index";
    if (exists(from)) {
      TRY(const std::string bytes, read_file(from, 4ULL << 30U));
      TRY_VOID(write_file_atomic(journal.index(), bytes, 0666));
    }
    std::string lines;
    // What goes comes first: it may be in the way of what comes.
    for (const bool removals : {true, false}) {
      for (const PlaceFile& file : placement_.files) {
        if ((file.kind == PlaceKind::absent) != removals) continue;
        lines.append(file.mode).append(" ").append(file.id).append("\t").append(file.path);
        lines.push_back('\0');
      }
    }
    git::GitCall call =
        call_on(placement_, {"-c", "core.splitIndex=false", "update-index", "-z", "--index-info"});
    call.input = lines;
    call.extra_env = {"GIT_INDEX_FILE=" + journal.index()};
    TRY(const std::string none, git::run_git(call));
    return {};
  }

  Status take_away(const PlaceJournal& journal, std::size_t number) {
    const PlaceFile& file = placement_.files[number];
    TRY_VOID(move_beneath(work_tree_.get(), file.path, journal.fd(), PlaceJournal::old_name(number)));
    // Looked at once more: now nobody else writes it by its name.
    TRY(const std::string taken, fingerprint_at(journal.fd(), PlaceJournal::old_name(number)));
    if (knows(file, taken)) return {};
    return make_error(Code::conflict, printable(file.path, 500) + " was changed meanwhile", "run it again");
  }

  Status put(const PlaceJournal& journal, std::size_t number) {
    const PlaceFile& file = placement_.files[number];
    TRY(const UniqueFd parent, make_parent(work_tree_.get(), file.path));
    struct stat info {};
    if (::fstat(parent.get(), &info) == 0 && (info.st_mode & S_ISGID) != 0) {
      // As if it had been made there; whoever may not give it away keeps their own group.
      const int given = ::fchownat(journal.fd(), PlaceJournal::new_name(number).c_str(),
                                   static_cast<uid_t>(-1), info.st_gid, AT_SYMLINK_NOFOLLOW);
      (void)given;
    }
    return move_beneath(journal.fd(), PlaceJournal::new_name(number), work_tree_.get(), file.path);
  }

  Status swap(const PlaceJournal& journal) {
    const auto stays = [&](std::size_t i) { return there_[i] == placement_.files[i].becomes; };
    for (std::size_t i = 0; i < there_.size(); ++i) {
      if (!stays(i) && there_[i] != "-" && there_[i] != "d") TRY_VOID(take_away(journal, i));
    }
    failpoint("apply-half");
    for (std::size_t i = 0; i < there_.size(); ++i) {
      if (placement_.files[i].kind == PlaceKind::absent) {
        remove_empty_parents(work_tree_.get(), placement_.files[i].path);
      }
    }
    for (std::size_t i = 0; i < there_.size(); ++i) {
      if (!stays(i) && placement_.files[i].kind != PlaceKind::absent) TRY_VOID(put(journal, i));
    }
    return {};
  }

  Status move_branch() {
    // It waits for nobody's lock: what we put back after a failure must not be met by a late success of it.
    git::GitCall call =
        call_on(placement_, {"-c", "core.filesRefLockTimeout=0", "update-ref", "--no-deref", "-m",
                             placement_.message, placement_.branch.empty() ? "HEAD" : placement_.branch,
                             placement_.new_head, placement_.old_head});
    call.extra_env = {"GIT_COMMITTER_NAME=" + placement_.name, "GIT_COMMITTER_EMAIL=" + placement_.email};
    call.outlives_us = true;
    const auto updated = git::run_git(call);
    if (updated) return {};
    // One that was killed behind its rename has moved the branch all the same; what git cannot tell has not.
    const auto moved = has_moved(placement_);
    if (moved && *moved) return {};
    return updated.error();
  }

  const Placement& placement_;
  int content_fd_;
  UniqueFd work_tree_;
  std::map<std::string, std::size_t> by_path_;
  std::vector<std::string> there_;  // what stands at each path, as check() saw it
};

}  // namespace

Result<std::vector<Obstacle>> place(const Placement& placement, int content_fd) {
  for (const PlaceFile& file : placement.files) {
    if (is_plain_path(file.path)) continue;
    return make_error(Code::denied, "not a path to write to: " + printable(file.path, 500));
  }
  std::string mended;
  std::optional<PlaceJournal> journal;
  if (!placement.dry_run) {
    TRY(journal, PlaceJournal::open(placement.git_dir, &mended));
  }
  TRY(UniqueFd work_tree, open_file(placement.work_tree, O_RDONLY | O_DIRECTORY));
  Placer placer(placement, content_fd, std::move(work_tree));
  auto found = placer.check();
  if (placement.dry_run) return found;
  if (!found || !found->empty()) {
    TRY_VOID(journal->remove());
    return found;
  }
  TRY_VOID(placer.apply(&*journal));
  return found;
}

Result<std::string> mend(const std::string& git_dir) {
  std::string mended;
  TRY(std::optional<PlaceJournal> journal, PlaceJournal::find(git_dir, &mended));
  if (journal) TRY_VOID(journal->remove());
  return mended;
}

}  // namespace cofferdam::handoff
