#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "gate/gate.h"

namespace cofferdam::gate {
namespace {

constexpr std::size_t kMaxDetail = 200;

BoxKind box_of(const Attack& attack, std::set<std::string> without) {
  return {attack.setting, std::move(without), attack.by_itself ? attack.id : ""};
}

std::optional<Answer> answer_of(std::string_view word) {
  if (word == "allowed") return Answer::allowed;
  if (word == "denied") return Answer::denied;
  if (word == "unavailable") return Answer::unavailable;
  if (word == "error") return Answer::error;
  return std::nullopt;
}

// "12 denied EPERM"
bool parse_line(const std::string& line, std::vector<Outcome>* out, std::vector<bool>* seen) {
  const std::vector<std::string> words = split(line, ' ');
  if (words.size() < 3 || words[0].empty() || words[0].size() > 6) return false;
  if (words[0].find_first_not_of("0123456789") != std::string::npos) return false;
  const std::size_t index = std::stoul(words[0]);
  const std::optional<Answer> answer = answer_of(words[1]);
  if (index >= out->size() || !answer.has_value()) return false;
  if ((*seen)[index]) {
    (*out)[index] = {Answer::error, "two answers"};
    return true;
  }
  (*seen)[index] = true;
  const std::string detail = line.substr(words[0].size() + words[1].size() + 2);
  (*out)[index] = {*answer, printable(detail, kMaxDetail)};
  return true;
}

Outcome find(const Outcomes& outcomes, const BoxKind& box, const std::string& id) {
  const auto in = outcomes.find(box);
  if (in == outcomes.end()) return {Answer::error, "its box was not made"};
  const auto found = in->second.find(id);
  return found == in->second.end() ? Outcome{} : found->second;
}

const char* answer_name(Answer answer) {
  switch (answer) {
    case Answer::allowed:
      return "allowed";
    case Answer::denied:
      return "denied";
    case Answer::unavailable:
      return "unavailable";
    case Answer::error:
      break;
  }
  return "error";
}

std::string describe(const Outcome& outcome) {
  return fmt::format("{}: {}", answer_name(outcome.answer), outcome.detail);
}

void judge_denial(const Outcome& attack, const Outcome& control, RowResult* out) {
  out->control_verdict = control.answer == Answer::allowed ? "shown" : "not shown: " + describe(control);
  out->detail = describe(attack);
  if (attack.answer == Answer::allowed) {
    out->verdict = Verdict::broken;
  } else if (control.answer == Answer::unavailable) {
    out->verdict = Verdict::not_applicable;
    out->detail = control.detail;
  } else {
    // What nobody could do there, and is possible without the layer, was stopped all the same.
    const bool stopped = attack.answer == Answer::denied || attack.answer == Answer::unavailable;
    const bool held = stopped && control.answer == Answer::allowed;
    out->verdict = held ? Verdict::held : Verdict::unproven;
  }
}

}  // namespace

std::vector<Row> plan_rows(const std::vector<Attack>& attacks) {
  std::vector<Row> rows;
  for (const Attack& attack : attacks) {
    std::set<std::string> all(attack.layers.begin(), attack.layers.end());
    all.insert(attack.aside.begin(), attack.aside.end());
    if (all.empty()) {
      rows.push_back({attack.id, attack, "-", box_of(attack, {}), std::nullopt});
      continue;
    }
    const BoxKind control = box_of(attack, all);
    rows.push_back({attack.id, attack, join(attack.layers, " + "), box_of(attack, {}), control});
    if (all.size() == 1) continue;
    for (const std::string& layer : attack.layers) {
      std::set<std::string> others = all;
      others.erase(layer);
      rows.push_back({attack.id + "/" + layer, attack, layer, box_of(attack, others), control});
    }
  }
  return rows;
}

std::vector<Outcome> parse_answers(const std::string& text, std::size_t acts) {
  std::vector<Outcome> out(acts);
  std::vector<bool> seen(acts, false);
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    if (!parse_line(line, &out, &seen))
      return std::vector<Outcome>(acts, {Answer::error, "a malformed answer"});
  }
  return out;
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::broken:
      return "BROKEN";
    case Verdict::unproven:
      return "unproven";
    case Verdict::not_applicable:
      break;
  }
  return "not applicable";
}

RowResult judge(const Row& row, const Outcomes& outcomes, const HostFacts& facts) {
  RowResult out{
      row.id, row.attack.what, row.attack.control, row.attack.classes, row.layer, "-", Verdict::unproven, ""};
  std::string missing = unmet(row.attack.need, facts);
  if (row.layer == "landlock" && !facts.landlock) missing = "this kernel has no Landlock of ABI 2 or newer";
  if (!missing.empty()) {
    out.verdict = Verdict::not_applicable;
    out.detail = missing;
    return out;
  }
  const Outcome attack = find(outcomes, row.denied_in, row.attack.id);
  if (!row.control.has_value()) {
    out.verdict = attack.answer == Answer::allowed ? Verdict::held : Verdict::broken;
    out.detail = describe(attack);
    return out;
  }
  judge_denial(attack, find(outcomes, *row.control, row.attack.id), &out);
  return out;
}

RowResult row_of(const NotApplicable& entry) {
  RowResult out;
  out.id = entry.id;
  out.attack = "-";
  out.classes = entry.id;
  out.layer = "-";
  out.control_verdict = "-";
  out.verdict = Verdict::not_applicable;
  out.detail = entry.reason;
  return out;
}

bool Report::passed() const {
  bool held = false;
  for (const RowResult& row : rows) {
    if (row.verdict == Verdict::broken || row.verdict == Verdict::unproven) return false;
    held = held || row.verdict == Verdict::held;
  }
  return held;
}

std::string Report::conclusion() const {
  std::map<Verdict, std::vector<std::string>> ids;
  std::set<std::string> layers;
  for (const RowResult& row : rows) {
    ids[row.verdict].push_back(row.id);
    if (row.verdict == Verdict::broken) layers.insert(row.layer == "-" ? "what a build needs" : row.layer);
  }
  const std::string counts = fmt::format("{} held, {} not applicable, {} boxes", ids[Verdict::held].size(),
                                         ids[Verdict::not_applicable].size(), boxes);
  if (passed()) return "every attack is stopped, by the layer that claims to: " + counts;
  std::string text;
  if (!layers.empty()) {
    text = fmt::format("BROKEN: {} does not hold: {}; ", join({layers.begin(), layers.end()}, ", "),
                       join(ids[Verdict::broken], ", "));
  }
  if (!ids[Verdict::unproven].empty()) {
    text += fmt::format("unproven: {}; ", join(ids[Verdict::unproven], ", "));
  }
  return text + counts;
}

}  // namespace cofferdam::gate
