#include "cli/gate_text.h"

#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxCell = 2048;

contract::Json text(const std::string& value) {
  return contract::json_text(value, kMaxCell);
}

std::size_t count(const gate::Report& report, gate::Verdict verdict) {
  std::size_t found = 0;
  for (const gate::RowResult& row : report.rows) found += row.verdict == verdict ? 1 : 0;
  return found;
}

}  // namespace

std::string gate_text(const gate::Report& report) {
  std::vector<std::vector<std::string>> cells;
  cells.reserve(report.rows.size());
  for (const gate::RowResult& row : report.rows) {
    std::string detail = row.attack == "-" ? row.detail : row.attack;
    const bool quiet = row.verdict == gate::Verdict::held || row.attack == "-";
    if (!quiet) detail += "; " + row.detail;
    if (!quiet && row.control_verdict != "shown" && row.control_verdict != "-") {
      detail += "; control " + row.control_verdict;
    }
    cells.push_back({row.id, verdict_name(row.verdict), row.layer, detail});
  }
  return table({"ATTACK", "VERDICT", "LAYER", "WHAT"}, cells) + "\n" + report.conclusion() + "\n";
}

std::string gate_json(const gate::Report& report) {
  contract::Json rows = contract::Json::array();
  for (const gate::RowResult& row : report.rows) {
    rows.push_back({{"id", text(row.id)},
                    {"attack", text(row.attack)},
                    {"control", text(row.control)},
                    {"classes", text(row.classes)},
                    {"layer", text(row.layer)},
                    {"control_verdict", text(row.control_verdict)},
                    {"verdict", verdict_name(row.verdict)},
                    {"detail", text(row.detail)}});
  }
  const contract::Json out = {{"passed", report.passed()},
                              {"conclusion", text(report.conclusion())},
                              {"held", count(report, gate::Verdict::held)},
                              {"broken", count(report, gate::Verdict::broken)},
                              {"unproven", count(report, gate::Verdict::unproven)},
                              {"not_applicable", count(report, gate::Verdict::not_applicable)},
                              {"boxes", report.boxes},
                              {"rows", rows}};
  return contract::canonical(out) + "\n";
}

std::string gate_list_text(const std::vector<gate::Row>& rows) {
  std::vector<std::vector<std::string>> cells;
  cells.reserve(rows.size());
  for (const gate::Row& row : rows) {
    cells.push_back(
        {row.id, row.layer, row.attack.control.empty() ? "-" : row.attack.control, row.attack.what});
  }
  return table({"ATTACK", "LAYER", "CONTROL", "WHAT"}, cells);
}

std::string gate_list_json(const std::vector<gate::Row>& rows) {
  contract::Json out = contract::Json::array();
  for (const gate::Row& row : rows) {
    out.push_back({{"id", text(row.id)},
                   {"attack", text(row.attack.what)},
                   {"control", text(row.attack.control)},
                   {"classes", text(row.attack.classes)},
                   {"layer", text(row.layer)}});
  }
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
