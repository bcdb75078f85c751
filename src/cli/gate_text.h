// What `cofferdam gate` says: one row per attack and layer, and one line of conclusion.
#pragma once

#include <string>
#include <vector>

#include "gate/gate.h"

namespace cofferdam::cli {

std::string gate_text(const gate::Report& report);
std::string gate_json(const gate::Report& report);  // one line
std::string gate_list_text(const std::vector<gate::Row>& rows);
std::string gate_list_json(const std::vector<gate::Row>& rows);  // one line

}  // namespace cofferdam::cli
