// Blocks of the script as output items of OpenAI's Responses API.
#pragma once

#include <string>
#include <vector>

#include "answer.h"

namespace cofferdam::standin {

// The tools that a request offers, wherever it lists them: in `tools`, in input items of type
// "additional_tools" (the code mode of newer models), and inside namespaces.
struct OfferedTool {
  std::string name;
  bool custom = false;  // takes a text instead of a JSON object
};
std::vector<OfferedTool> offered_tools(const Json& body);

// A completed item. README.md has how a tool_use becomes a call.
Json output_item(const Block& block, const std::vector<OfferedTool>& offered);

}  // namespace cofferdam::standin
