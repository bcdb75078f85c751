#include "contract/plan_answer.h"

#include "contract/json.h"

namespace cofferdam::contract {
namespace {

// The vendors' strict modes take no bounds; those are in contracts/plan-answer.schema.json and below.
constexpr const char* kSchema =
    R"({"type":"object","additionalProperties":false,"required":["summary","steps","files","risks","commands"],)"
    R"("properties":{"summary":{"type":"string","description":"What the plan achieves, in a few sentences."},)"
    R"("steps":{"type":"array","description":"The work in the order in which it is done; at least one step.",)"
    R"("items":{"type":"object","additionalProperties":false,"required":["title","detail"],)"
    R"("properties":{"title":{"type":"string","description":"One line."},)"
    R"("detail":{"type":"string","description":"What to change, where, and how it is known to be right."}}}},)"
    R"("files":{"type":"array","description":"Paths that the work touches, relative to the repository.",)"
    R"("items":{"type":"string"}},)"
    R"("risks":{"type":"array","description":"What could go wrong, one line each.","items":{"type":"string"}},)"
    R"("commands":{"type":"array","description":"Commands that the work would need; proposals, never grants.",)"
    R"("items":{"type":"string"}}}})";

constexpr std::size_t kMaxPlanBytes = 1U << 20U;
constexpr TextBounds kSummary{1, 16'384};
constexpr TextBounds kTitle{1, 512};
constexpr TextBounds kDetail{0, 16'384};
constexpr TextBounds kEntry{1, 4096};
constexpr std::size_t kMaxSteps = 100;
constexpr std::size_t kMaxEntries = 1000;

}  // namespace

const std::string& plan_answer_schema() {
  static const std::string kText = kSchema;
  return kText;
}

Result<PlanAnswer> decode_plan_answer(std::string_view json) {
  TRY(Json document, parse_json(json, kMaxPlanBytes));
  JsonFault fault;
  ObjectReader in(document, "$", &fault);
  PlanAnswer out;
  out.summary = in.text("summary", kSummary);
  for (ObjectReader& step : in.objects("steps", 1, kMaxSteps)) {
    PlanStep one;
    one.title = step.text("title", kTitle);
    one.detail = step.text("detail", kDetail);
    step.finish();
    out.steps.push_back(std::move(one));
  }
  out.files = in.texts("files", 0, kMaxEntries, kEntry);
  out.risks = in.texts("risks", 0, kMaxEntries, kEntry);
  out.commands = in.texts("commands", 0, kMaxEntries, kEntry);
  in.finish();
  if (fault.failed()) return fault.error();
  return out;
}

}  // namespace cofferdam::contract
