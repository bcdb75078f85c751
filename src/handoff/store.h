// The attempt's own object store: a bare repository of ours that borrows the base pack and receives the
// verified pack of the collect box. It is never mounted into a box.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"
#include "contract/clone.h"

namespace cofferdam::handoff {

struct CommitInput {
  std::string tree;
  std::string parent;       // the trusted head
  std::string author_name;  // also the committer
  std::string author_email;
  Timestamp time;             // in UTC, whole seconds: the commit id depends on nothing else
  std::string message;        // of commit_message()
  std::string sign_key = {};  // contract::Config::sign_key
};

// Removes what open_incoming() has left in a store when its process was killed; a store that is not there is
// fine.
Status remove_incoming(const std::string& store_path);

// Where a collect box writes: two empty files in a folder that is removed unless they are adopted.
struct Incoming {
  TempDir folder;
  UniqueFd pack;   // write only
  UniqueFd index;  // write only
};

class AttemptStore {
 public:
  // In the new folder `path` ("attempts/<id>/store.git"); Code::conflict when it exists.
  static Result<AttemptStore> create(const std::string& path, const contract::CloneIdentity& identity,
                                     const contract::BasePacks& base);
  // A store that create() made earlier; Code::not_found otherwise.
  static Result<AttemptStore> open(const std::string& path);

  const std::string& path() const { return path_; }

  Result<Incoming> open_incoming() const;
  // Checks sizes, headers and that the index belongs to the pack, then moves both in, the index last.
  // The pack's name in the result: "pack-" and its checksum.
  Result<std::string> adopt(Incoming incoming) const;
  // Takes a pack of adopt() out again, with what only it has.
  void remove_pack(const std::string& name) const;
  // Writes the commit object and returns its id. The tree must be in the store. An error of signing leaves
  // nothing; without a key the same commit can be made unsigned.
  Result<std::string> commit(const CommitInput& input) const;
  // Whether the commit has a signature (which need not be a good one).
  Result<bool> is_signed(const std::string& commit) const;
  // The commits on top of `base` up to this one, signed: those that are signed already stay as they are, the
  // first that is not and all behind it are written anew. The new last one.
  Result<std::string> sign(const std::string& base, const std::string& commit, const std::string& key) const;
  // The change as text for people, never more than `max_bytes` (Code::exhausted). No driver, no textconv, no
  // colour; the bytes are the files' own: a caller that writes to a terminal makes them printable first.
  Result<std::string> diff(const std::string& base, const std::string& commit,
                           std::size_t max_bytes = 64U << 20U) const;

 private:
  explicit AttemptStore(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace cofferdam::handoff
