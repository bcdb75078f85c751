// What `apply` prints: for people, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "contract/result.h"

namespace cofferdam::cli {

struct ApplyLine {
  std::string kind;
  std::string path;
  std::string detail;
};

struct ApplyText {
  std::string attempt_id;
  bool applied = false;
  bool dry_run = false;
  std::string kind;    // "nothing", "fast-forward", "merge"
  std::string branch;  // full ref; empty when HEAD is detached
  std::string from;
  std::string to;
  std::vector<contract::ChangedFile> files;
  std::vector<ApplyLine> stopped;
  std::vector<std::string> notes;
};

std::string apply_text(const ApplyText& text);
std::string apply_json(const ApplyText& text);  // one line

}  // namespace cofferdam::cli
