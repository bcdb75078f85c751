// `cofferdam gate`: the attacks of attack.h in boxes of this host, and in boxes without the layers that claim
// to stop them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "attempt/run.h"
#include "base/result.h"
#include "gate/attack.h"
#include "gate/host_facts.h"

namespace cofferdam::gate {

// One box, by what it is made with. Attacks that share one run in it one after the other.
struct BoxKind {
  Setting setting = Setting::agent;
  std::set<std::string> without;
  std::string only;  // id of the attack that has it for itself; empty: many
  bool operator==(const BoxKind&) const = default;
  bool operator<(const BoxKind& other) const {
    return std::tie(setting, without, only) < std::tie(other.setting, other.without, other.only);
  }
};

// What is to be shown: the attack is denied in one box, and works in another.
struct Row {
  std::string id;  // the attack's, and "/LAYER" where one layer is shown alone
  Attack attack;
  std::string layer;  // "seccomp", "seccomp + capabilities"; "-": it has to work
  BoxKind denied_in;
  std::optional<BoxKind> control;  // none of what has to work
};
// An attack on one layer is one row. On several it is a row for all of them together and one for each alone,
// in a box without the others.
std::vector<Row> plan_rows(const std::vector<Attack>& attacks);

enum class Answer { allowed, denied, unavailable, error };
struct Outcome {
  Answer answer = Answer::error;
  std::string detail = "no answer";
};
// By box and by the attack's id.
using Outcomes = std::map<BoxKind, std::map<std::string, Outcome>>;
// The lines of cofferdam-probe; hostile, as everything from a box. One outcome per act; what is missing,
// doubled or malformed is an error. Pure.
std::vector<Outcome> parse_answers(const std::string& text, std::size_t acts);

enum class Verdict { held, broken, unproven, not_applicable };
const char* verdict_name(Verdict verdict);

struct RowResult {
  std::string id;
  std::string attack;   // in words
  std::string control;  // of the control table; may be empty
  std::string classes;
  std::string layer;
  std::string control_verdict;  // "shown", or why not; "-" where there is none
  Verdict verdict = Verdict::unproven;
  std::string detail;
};
RowResult judge(const Row& row, const Outcomes& outcomes, const HostFacts& facts);
RowResult row_of(const NotApplicable& entry);

struct Report {
  std::vector<RowResult> rows;
  std::size_t boxes = 0;
  bool passed() const;  // nothing is broken or unproven, and something held
  // One line: what held, or which layers do not stop what they claim.
  std::string conclusion() const;
};

// `only`: an attack's id or a row's. Code::usage when there is no such one.
Result<std::vector<Row>> choose_rows(const std::optional<std::string>& only);
// Everything, in the table's order; with `only` that attack. An Error when no box can be made here. `probe`:
// path of cofferdam-probe.
Result<Report> run(const attempt::Host& host, const std::string& probe,
                   const std::optional<std::string>& only);

}  // namespace cofferdam::gate
