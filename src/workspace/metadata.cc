#include "workspace/metadata.h"

#include "base/text.h"

namespace cofferdam::workspace {
namespace {

// Complete: nothing is read from anywhere else.
std::string config_text(bool sha256) {
  std::string text = "[core]\n\trepositoryformatversion = ";
  text += sha256 ? "1" : "0";
  text +=
      "\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n\thooksPath = /dev/null\n"
      "\tfsmonitor = false\n\tprotectHFS = true\n\tprotectNTFS = true\n\tsymlinks = true\n"
      "\tignorecase = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n"
      "\tdetachedHead = false\n";
  if (sha256) text += "[extensions]\n\tobjectformat = sha256\n";
  return text;
}

}  // namespace

std::vector<MetadataFile> plan_metadata(const contract::CloneIdentity& clone, const std::string& branch,
                                        const std::vector<std::string>& shallow) {
  std::vector<MetadataFile> files = {
      {"config", config_text(clone.object_format == "sha256")},
      {"HEAD", "ref: refs/heads/" + branch + "\n"},
      {"refs/heads/" + branch, clone.base + "\n"},
  };
  if (!shallow.empty()) files.push_back({"shallow", join(shallow, "\n") + "\n"});
  return files;
}

}  // namespace cofferdam::workspace
