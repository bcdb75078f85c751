// The images of a state folder. One is the folder `<state>/images/<SHA-256 of its manifest>` with
//   tree/      the files, readable for everybody who can walk to them
//   manifest   what is in tree/ (tree.h); its SHA-256 is the image's name
//   stat       the SHA-256 over what stat(2) said of tree/ when its content was last compared with the
//   manifest about      where it came from, as JSON in-use     locked (flock(2), shared) by supervisors and
//   keepers that work with it
// It comes into being by one rename, and goes by one.
//
// Thread rules: free functions and values; any number of processes at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/in_use.h"
#include "base/result.h"
#include "image/tree.h"

namespace cofferdam::image {

// Where an image has agents of its own: the agents folder of ARCHITECTURE.md, with its node_modules.
inline constexpr const char* kAgentsInImage = "/opt/cofferdam/agents";

// "sha256:" and 64 hexadecimal digits.
bool is_image_id(std::string_view text);
// The one image that `text` names: its id, or a part of at least 8 digits of it from the start on.
// Code::usage for what cannot be one, Code::not_found.
Result<std::string> find_image(const std::string& state_dir, const std::string& text);

// An image that nobody removes as long as this, or a process that inherited its descriptor, lives, and whose
// tree was what its name says when it was taken into use.
struct ImageUse {
  std::string id;
  std::string tree;  // absolute path
  StatFacts facts;
  UniqueFd lock;
};
// Compares what stat(2) says; where that has changed, every byte. Code::not_found when there is none of that
// name, Code::denied when it is not what it was made as.
Result<ImageUse> use_image(const std::string& state_dir, const std::string& id);
// Compares every byte with the manifest, and the manifest with the name. Code::denied, as above.
Status verify_image(const std::string& state_dir, const std::string& id);

struct ImageEntry {
  std::string id;
  std::string from;  // "debian12.lock", "import of FILE"
  Timestamp created_at;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  Timestamp last_use;
  bool in_use = false;
};
Result<std::vector<ImageEntry>> list_images(const std::string& state_dir);
// Code::conflict when it is in use.
Status remove_image(const std::string& state_dir, const std::string& id);
// What killed processes were making or removing.
Status remove_image_leftovers(const std::string& state_dir);

// An image in the making: goes with everything in it unless finish() has put it in place.
class NewImage {
 public:
  static Result<NewImage> create(const std::string& state_dir);
  const std::string& folder() const { return nursery_.path(); }  // for files of ours on the way
  std::string tree() const { return made_ + "/tree"; }
  // Names it and puts it in place. `from` is for people. Whoever was first wins: the other's is verified.
  Result<std::string> finish(const std::string& from);

 private:
  explicit NewImage(Nursery nursery) : nursery_(std::move(nursery)), made_(nursery_.path() + "/made") {}
  Nursery nursery_;
  std::string made_;
  std::string state_dir_;
};

}  // namespace cofferdam::image
