#include "handoff/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/text.h"
#include "contract/rules.h"
#include "contract/sensitive_paths.h"

namespace cofferdam::handoff {
namespace {

using contract::Finding;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool is_hostile_name(std::string_view path) {
  return contract::has_control(path) || !is_valid_utf8(path);
}

// Names that Windows gives to devices, with or without an extension.
bool is_device_name(std::string_view name) {
  const std::string stem = lower(name.substr(0, name.find('.')));
  static constexpr std::array kNames = {"con", "prn", "aux", "nul"};
  if (std::find(kNames.begin(), kNames.end(), stem) != kNames.end()) return true;
  return stem.size() == 4 && (starts_with(stem, "com") || starts_with(stem, "lpt")) && stem[3] >= '1' &&
         stem[3] <= '9';
}

class Judge {
 public:
  explicit Judge(const contract::FindingChoices& choices) : choices_(choices) {}

  // Box and host may say the same; the box's "dropped" is a fact that no choice changes.
  void note(const std::string& rule, const std::string& path, const std::string& fact) {
    const contract::FindingRule* known = contract::find_rule(rule);
    std::string action = fact;
    if (known != nullptr && fact != "dropped") action = finding_action_name(action_of(*known, choices_));
    if (action == "refused" && refused_++ == 0) refusal_ = fmt::format("{}: {}", rule, printable(path, 300));
    all_.push_back({rule, path, action});
  }

  void look_at(const Change& change, const Collected& collected) {
    if (change.file.status == "deleted") return note_kind(change.file.path);
    note_kind(change.file.path);
    if (change.mode == "120000") {
      const auto link = collected.links.find(change.id);
      // A target that was not handed out is too long to be judged.
      if (link == collected.links.end() || leads_outside(change.file.path, link->second)) {
        note("symlink-outside", change.file.path, "reported");
      }
    }
    if (change.file.status != "added") return;
    if (is_hostile_name(change.file.path)) return note("control-name", change.file.path, "reported");
    if (!unportable_because(change.file.path).empty()) note("unportable-name", change.file.path, "reported");
    if (has_twin(change.file.path)) note("unportable-name", change.file.path, "reported");
  }

  void know(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) spelled_.emplace(lower(path), path);
  }

  Verdict take(std::uint64_t more) {
    // Refused ones first, so that the bound leaves none of them out for one that is only reported.
    const auto rank = [](const Finding& one) {
      return std::make_tuple(one.action != "refused", one.path, one.rule, one.action);
    };
    std::sort(all_.begin(), all_.end(),
              [&](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
    Verdict out;
    out.more = more;
    if (all_.size() > kMaxJudgedFindings) {
      out.more += all_.size() - kMaxJudgedFindings;
      all_.resize(kMaxJudgedFindings);
    }
    std::sort(all_.begin(), all_.end(), [](const Finding& a, const Finding& b) {
      return std::tie(a.path, a.rule, a.action) < std::tie(b.path, b.rule, b.action);
    });
    out.findings = std::move(all_);
    out.refused = refused_;
    if (refused_ == 1) out.refusal = refusal_;
    if (refused_ > 1) out.refusal = fmt::format("{} and {} more", refusal_, refused_ - 1);
    return out;
  }

 private:
  // A file or a folder on the way to it that another one differs from in case alone: one place on many hosts.
  bool has_twin(const std::string& path) {
    bool twin = false;
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      const std::string part = path.substr(0, end);
      twin = spelled_.emplace(lower(part), part).first->second != part || twin;
    }
    return twin;
  }

  void note_kind(const std::string& path) {
    if (auto kind = contract::sensitive_kind(path)) note(*kind, path, "reported");
  }

  const contract::FindingChoices& choices_;
  std::vector<Finding> all_;
  std::map<std::string, std::string> spelled_;  // by the path in lower case
  std::uint64_t refused_ = 0;
  std::string refusal_;
};

}  // namespace

bool leads_outside(std::string_view link_path, std::string_view target) {
  if (target.empty() || target.front() == '/') return true;
  auto room = static_cast<std::size_t>(std::count(link_path.begin(), link_path.end(), '/'));
  bool going_up = true;
  for (const std::string& part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      if (lower(part) == ".git") return true;
      going_up = false;
      continue;
    }
    // Behind a name it depends on where that name leads, which may be a link: nobody can say by names alone.
    if (!going_up || room == 0) return true;
    --room;
  }
  return false;
}

std::string unportable_because(std::string_view path) {
  for (const std::string& name : split(path, '/')) {
    if (name.find_first_of("<>:\"\\|?*") != std::string::npos)
      return "a character that Windows does not allow";
    if (!name.empty() && (name.back() == '.' || name.back() == ' ')) return "a dot or blank at the end";
    if (is_device_name(name)) return "the name of a device on Windows";
  }
  return "";
}

Verdict judge(const std::vector<Finding>& noted, std::uint64_t more, const Collected& collected,
              const contract::FindingChoices& choices) {
  Judge judge(choices);
  for (const Finding& one : noted) judge.note(one.rule, one.path, one.action);
  judge.know(collected.beside);
  for (const Change& change : collected.changes) judge.look_at(change, collected);
  return judge.take(more);
}

}  // namespace cofferdam::handoff
