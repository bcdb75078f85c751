// A laboratory: a user's repository, the agent's work tree and our stores in one temporary folder, with real
// git. The scripts of the boxes run here without a box; when the tests run as root they run as another user,
// so that the metadata are read-only for them as they are in a box.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "base/file.h"
#include "base/process.h"
#include "clone/clone.h"
#include "handoff/collect.h"
#include "handoff/publish.h"
#include "handoff/snapshot.h"
#include "handoff/store.h"

namespace lab {

// The value, or the end of the test case with the error's line.
template <typename T>
T must(cofferdam::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().line());
  return std::move(result).value();
}
inline void must(const cofferdam::Status& status) {
  if (!status) throw std::runtime_error(status.error().line());
}

class Lab {
 public:
  Lab();

  std::string at(const std::string& name) const { return dir_.path() + "/" + name; }
  // /bin/sh -eu in the folder, with a git that knows an identity. Standard output; throws when it fails.
  std::string sh(const std::string& folder, const std::string& script) const;
  // The user's repository at at("source"), made by `script`, which need not commit.
  void make_source(const std::string& script, const std::string& object_format = "sha1");
  // Clone, checkout into at("work"), metadata at at("metadata").
  void prepare();
  // Both trees as prepare() made them.
  void reset() const;
  // The same edits in the work tree and in at("trusted"), a plain clone.
  void edit(const std::string& script) const;
  // What plain git makes of the trusted copy.
  std::string trusted_tree() const;
  // How many objects that tree has beyond the base.
  std::string new_objects(const std::string& tree) const;

  cofferdam::Result<cofferdam::handoff::Snapshot> snapshot(
      cofferdam::handoff::SnapshotInput input = {}) const;
  // The same edits in the trusted copy and through an overlay over the tree as prepare() made it, in
  // namespaces of their own; then the snapshot with the upper layer at hand.
  cofferdam::Result<cofferdam::handoff::Snapshot> overlay_snapshot(
      const std::string& edit, cofferdam::handoff::SnapshotInput input = {}, bool trusted_too = true) const;
  cofferdam::Result<cofferdam::handoff::Collected> collect(const cofferdam::handoff::AttemptStore& store,
                                                           cofferdam::handoff::CollectInput input) const;
  cofferdam::handoff::AttemptStore make_store(const std::string& name) const;
  // Snapshot, collect, adopt and commit: the whole way out.
  std::string commit_work(const cofferdam::handoff::AttemptStore& store) const;

  cofferdam::clone::Source source;
  cofferdam::clone::Cloned cloned;

 private:
  cofferdam::handoff::ScriptPaths paths() const;
  cofferdam::Captured run_script(const std::vector<std::string>& argv,
                                 std::vector<cofferdam::FdMapping> fds) const;

  cofferdam::TempDir dir_;
  std::optional<cofferdam::UserIds> boxed_;
};

}  // namespace lab
