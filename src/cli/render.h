// The result of an attempt for people. Whatever an agent could have written is made printable here.
#pragma once

#include <string>

#include "contract/result.h"

namespace cofferdam::cli {

struct RenderStyle {
  bool color = false;
};

std::string render_result(const contract::ResultRecord& result, const RenderStyle& style);
// A plan as readable text; the answer as it is (printable) when it is no plan.
std::string render_plan(const std::string& answer);
// Color belongs on this descriptor: a terminal that knows how, and NO_COLOR is not set.
bool wants_color(int fd);

}  // namespace cofferdam::cli
