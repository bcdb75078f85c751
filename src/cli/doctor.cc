#include "cli/doctor.h"

#include <algorithm>

#include "cli/table.h"
#include "contract/controls.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxCell = 2048;

const CheckRow* first_unavailable(const std::vector<CheckRow>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [](const CheckRow& row) { return row.state == CheckState::unavailable; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const char* check_state_name(CheckState state) {
  switch (state) {
    case CheckState::ok:
      return "ok";
    case CheckState::weaker:
      return "weaker";
    case CheckState::unavailable:
      return "unavailable";
  }
  return "unavailable";
}

bool is_ready(const std::vector<CheckRow>& rows) {
  return first_unavailable(rows) == nullptr;
}

std::string conclusion(const std::vector<CheckRow>& rows) {
  const CheckRow* blocker = first_unavailable(rows);
  if (blocker == nullptr) return "ready";
  return "not ready: " +
         one_line(blocker->remedy.empty() ? blocker->name + ": " + blocker->detail : blocker->remedy);
}

std::string doctor_text(const std::vector<CheckRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const CheckRow& row : rows) {
    std::string detail = row.detail;
    if (row.state != CheckState::ok && !row.remedy.empty()) detail += "; " + row.remedy;
    cells.push_back({row.name, check_state_name(row.state), detail});
  }
  return table({"CHECK", "STATE", "DETAIL"}, cells) + "\n" + conclusion(rows) + "\n";
}

std::string doctor_json(const std::vector<CheckRow>& rows) {
  contract::Json checks = contract::Json::array();
  for (const CheckRow& row : rows) {
    checks.push_back(
        {{"name", contract::json_text(row.name, kMaxCell)},
         {"state", check_state_name(row.state)},
         {"detail", contract::json_text(row.detail, kMaxCell)},
         {"remedy", contract::json_text(row.state == CheckState::ok ? "" : row.remedy, kMaxCell)}});
  }
  const contract::Json out = {
      {"ready", is_ready(rows)}, {"conclusion", conclusion(rows)}, {"checks", checks}};
  return contract::canonical(out) + "\n";
}

std::vector<CheckRow> control_rows(const std::vector<contract::ControlFact>& facts) {
  std::vector<CheckRow> rows;
  for (const contract::ControlFact& fact : facts) {
    CheckState state = CheckState::ok;
    if (!fact.enforced) state = fact.required ? CheckState::unavailable : CheckState::weaker;
    const contract::Control* control = contract::find_control(fact.name);
    rows.push_back({fact.name, state, fact.proof, control == nullptr ? "" : control->fix});
  }
  return rows;
}

std::vector<CheckRow> box_rows(const Result<std::vector<contract::ControlFact>>& probed) {
  if (probed) return control_rows(*probed);
  return {{"box", CheckState::unavailable, probed.error().what, probed.error().hint}};
}

}  // namespace cofferdam::cli
