#include "workspace/plan_keeper.h"

#include <algorithm>

namespace cofferdam::workspace {
namespace {

using plan::Op;
using plan::OpCode;

constexpr std::uint64_t kReadOnly = 1;

Op dir(const std::string& path) {
  return {OpCode::dir, "", path, 0755, 0, 0};
}

// The host's tree is at /host in a keeper.
Op from(OpCode code, const Source& source, const std::string& target, std::uint64_t n1) {
  return {code, source.fd != 0 ? "" : "/host" + source.path, target,
          n1,   static_cast<std::uint64_t>(source.fd),       0};
}

// Room for the index twice (git writes a new one beside the old one) and refs.
std::uint64_t metadata_bytes(const KeeperInput& input) {
  return std::max(input.work_inodes * 512, input.index_bytes * 3) + (16U << 20U);
}

void add_work(const KeeperInput& input, std::vector<Op>* ops) {
  const bool written = input.form == TreeForm::checkout || input.form == TreeForm::overlay;
  if (!written) {
    ops->push_back(dir("/work"));
  } else if (input.disk.given()) {
    ops->push_back(from(OpCode::bind, input.disk, "/work", 0));
  } else {
    ops->push_back({OpCode::tmpfs, "", "/work", input.work_bytes, input.work_inodes, 0755});
  }
  ops->push_back(dir("/work/tree"));
  if (input.form == TreeForm::overlay) ops->push_back(from(OpCode::work_tree, input.tree, "/work/tree", 0));
  if (input.form == TreeForm::read_only) ops->push_back(from(OpCode::overlay, input.tree, "/work/tree", 0));
  if (input.form == TreeForm::emptying) {
    ops->push_back(from(OpCode::bind, input.tree, "/work/tree", 0));
    return;
  }
  if (input.form == TreeForm::making) ops->push_back(from(OpCode::bind, input.tree, "/work/tree", 0));
  // Where boxes mount the metadata. A cached tree has it.
  ops->push_back(dir("/work/tree/.git"));
}

void add_metadata(const KeeperInput& input, std::vector<Op>* ops) {
  const std::string git = "/meta/git";
  ops->push_back({OpCode::tmpfs, "", "/meta", metadata_bytes(input), 4096, 0755});
  ops->push_back(dir(git));
  for (const char* folder : {"/refs", "/refs/heads", "/info", "/objects"}) ops->push_back(dir(git + folder));
  for (const MetadataFile& file : input.metadata) {
    for (std::size_t at = file.name.find('/'); at != std::string::npos; at = file.name.find('/', at + 1)) {
      std::string folder = git;
      folder.append("/").append(file.name, 0, at);
      ops->push_back(dir(folder));
    }
    ops->push_back({OpCode::file, file.content, git + "/" + file.name, 0, 0, 0});
  }
  // An overlay, so that the host's path does not show in a box's mount table.
  if (input.objects.given())
    ops->push_back(from(OpCode::overlay, input.objects, git + "/objects", kReadOnly));
  if (input.index_fd != 0) {
    ops->push_back({OpCode::copy, "", git + "/index", 0, static_cast<std::uint64_t>(input.index_fd), 0});
  }
}

}  // namespace

const char* tree_form_name(TreeForm form) {
  if (form == TreeForm::overlay) return "overlay";
  return form == TreeForm::read_only ? "read-only" : "checkout";
}

plan::Plan plan_keeper(const KeeperInput& input) {
  plan::Plan plan;
  plan.role = plan::Role::keeper;
  plan.linger_ms = static_cast<std::uint64_t>(input.linger.count());
  plan.ops.push_back(dir("/box"));
  // An overlay, so that no path of the state folder shows in a box's mount table.
  if (input.image.given()) plan.ops.push_back(from(OpCode::overlay, input.image, "/image", kReadOnly));
  add_work(input, &plan.ops);
  add_metadata(input, &plan.ops);
  // Loose objects of everything that the agent may have written, and a pack of them.
  plan.ops.push_back({OpCode::tmpfs, "", "/out", input.work_bytes * 2, input.work_inodes * 2 + 4096, 0755});
  return plan;
}

}  // namespace cofferdam::workspace
