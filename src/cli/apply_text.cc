#include "cli/apply_text.h"

#include <fmt/core.h>

#include "base/text.h"
#include "cli/table.h"
#include "contract/json.h"
#include "contract/result_shape.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kShown = 200;

std::string branch_of(const std::string& ref) {
  constexpr std::string_view kHeads = "refs/heads/";
  if (ref.empty()) return "HEAD (detached)";
  return one_line(starts_with(ref, kHeads) ? ref.substr(kHeads.size()) : ref, 200);
}

std::string head_line(const ApplyText& text) {
  const std::string branch = branch_of(text.branch);
  if (text.kind == "nothing") return fmt::format("{} has the work of {} already\n", branch, text.attempt_id);
  const std::string from = text.from.substr(0, 12);
  if (text.applied) {
    return fmt::format("applied    {} to {}: {} -> {} ({})\n", text.attempt_id, branch, from,
                       text.to.substr(0, 12), text.kind);
  }
  if (!text.stopped.empty()) {
    return fmt::format("stopped    {} is not applied to {}; nothing was touched\n", text.attempt_id, branch);
  }
  return fmt::format("would apply {} to {} at {} ({})\n", text.attempt_id, branch, from, text.kind);
}

}  // namespace

std::string apply_text(const ApplyText& text) {
  std::string out = head_line(text);
  std::size_t shown = 0;
  for (const ApplyLine& line : text.stopped) {
    if (++shown > kShown) break;
    out +=
        fmt::format("  {:<12} {}: {}\n", one_line(line.kind, 40), one_line(line.path), one_line(line.detail));
  }
  if (text.stopped.size() > kShown) out += fmt::format("  ... and {} more\n", text.stopped.size() - kShown);
  if (text.stopped.empty()) {
    shown = 0;
    for (const contract::ChangedFile& file : text.files) {
      if (++shown > kShown) break;
      out += fmt::format("  {:<12} {}\n", one_line(file.status, 40), one_line(file.path));
    }
    if (text.files.size() > kShown) out += fmt::format("  ... and {} more\n", text.files.size() - kShown);
  }
  for (const std::string& note : text.notes) out += "note       " + one_line(note, 1000) + "\n";
  if (text.applied) out += fmt::format("undo       git reset --keep {}\n", text.from.substr(0, 12));
  return out;
}

std::string apply_json(const ApplyText& text) {
  contract::Json files = contract::Json::array();
  for (const contract::ChangedFile& file : text.files) {
    files.push_back(
        {{"path", contract::json_text(file.path, contract::kMaxChangedPathBytes)}, {"status", file.status}});
  }
  contract::Json stopped = contract::Json::array();
  for (const ApplyLine& line : text.stopped) {
    stopped.push_back({{"kind", line.kind},
                       {"path", contract::json_text(line.path, contract::kMaxChangedPathBytes)},
                       {"detail", contract::json_text(line.detail, 4096)}});
  }
  contract::Json notes = contract::Json::array();
  for (const std::string& note : text.notes) notes.push_back(contract::json_text(note, 4096));
  const contract::Json branch =
      text.branch.empty() ? contract::Json(nullptr) : contract::json_text(text.branch, 4096);
  return contract::canonical({{"attempt_id", text.attempt_id},
                              {"applied", text.applied},
                              {"dry_run", text.dry_run},
                              {"kind", text.kind},
                              {"branch", branch},
                              {"from", text.from},
                              {"to", text.to.empty() ? contract::Json(nullptr) : contract::Json(text.to)},
                              {"files", files},
                              {"stopped", stopped},
                              {"notes", notes}}) +
         "\n";
}

}  // namespace cofferdam::cli
