#include "openai_items.h"

#include <algorithm>

#include "base/text.h"

namespace cofferdam::standin {
namespace {

constexpr const char* kCodeModeTool = "exec";

void add_tools(const Json& tools, std::vector<OfferedTool>* out) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    if (!tool.is_object()) continue;
    const Json type = tool.value("type", Json());
    const Json name = tool.value("name", Json());
    if (type == "namespace") {
      add_tools(tool.value("tools", Json()), out);
    } else {
      // The vendor's own tools have a type and no name.
      const Json& shown = name.is_string() ? name : type;
      if (shown.is_string()) out->push_back({shown.get<std::string>(), type == "custom"});
    }
  }
}

const OfferedTool* find_tool(const std::vector<OfferedTool>& offered, const std::string& name) {
  for (const OfferedTool& tool : offered) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

// A tool that takes a text has it as the only member, "input".
bool is_free_form(const Json& input) {
  return input.size() == 1 && input.contains("input") && input["input"].is_string();
}

Json call_item(const char* type, const char* prefix, const std::string& name) {
  return {{"type", type},
          {"id", prefix + random_hex(12)},
          {"call_id", "call_" + random_hex(12)},
          {"name", name},
          {"status", "completed"}};
}

Json custom_call(const std::string& name, const std::string& input) {
  Json item = call_item("custom_tool_call", "ctc_", name);
  item["input"] = input;
  return item;
}

// "mcp__box.run_command": a tool inside a namespace.
Json function_call(const std::string& full_name, const Json& input) {
  const std::size_t dot = full_name.rfind('.');
  Json item = call_item("function_call", "fc_", full_name.substr(dot == std::string::npos ? 0 : dot + 1));
  if (dot != std::string::npos) item["namespace"] = full_name.substr(0, dot);
  item["arguments"] = dump(input);
  return item;
}

// What a model in code mode writes to call one tool and to see what it says. JSON is JavaScript.
std::string code_for(const std::string& name, const Json& input) {
  const Json& argument = is_free_form(input) ? input["input"] : input;
  return "const result = await tools." + name + "(" + dump(argument) + ");\ntext(result.output ?? result);\n";
}

Json tool_call(const Block& block, const std::vector<OfferedTool>& offered) {
  const Json input = Json::parse(block.input);
  const OfferedTool* tool = find_tool(offered, block.name);
  if (tool != nullptr && tool->custom) {
    return custom_call(block.name, is_free_form(input) ? input["input"].get<std::string>() : dump(input));
  }
  const OfferedTool* code_mode = find_tool(offered, kCodeModeTool);
  const bool wrap = tool == nullptr && code_mode != nullptr && code_mode->custom &&
                    block.name.find('.') == std::string::npos;
  return wrap ? custom_call(kCodeModeTool, code_for(block.name, input)) : function_call(block.name, input);
}

}  // namespace

std::vector<OfferedTool> offered_tools(const Json& body) {
  std::vector<OfferedTool> out;
  add_tools(body.value("tools", Json()), &out);
  for (const Json& item : body.value("input", Json::array())) {
    if (item.is_object() && item.value("type", Json()) == "additional_tools")
      add_tools(item.value("tools", Json()), &out);
  }
  return out;
}

Json output_item(const Block& block, const std::vector<OfferedTool>& offered) {
  switch (block.kind) {
    case Block::Kind::text:
      return {
          {"type", "message"},
          {"id", "msg_" + random_hex(12)},
          {"status", "completed"},
          {"role", "assistant"},
          {"content",
           Json::array({{{"type", "output_text"}, {"text", block.text}, {"annotations", Json::array()}}})}};
    case Block::Kind::thinking:
      return {{"type", "reasoning"},
              {"id", "rs_" + random_hex(12)},
              {"summary", Json::array({{{"type", "summary_text"}, {"text", block.text}}})},
              {"encrypted_content", "c3RhbmQtaW4="}};
    case Block::Kind::tool_use:
      break;
  }
  return tool_call(block, offered);
}

}  // namespace cofferdam::standin
