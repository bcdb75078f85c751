#include "contract/plan_answer.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "contract/json.h"

namespace cofferdam::contract {
namespace {

// What the vendors' strict modes do not take, or do not need.
void remove_bounds(Json* schema) {
  for (const char* key :
       {"$schema", "$id", "$comment", "title", "minItems", "maxItems", "minLength", "maxLength"}) {
    // A property may be called "title"; then its value is a schema.
    if (schema->contains(key) && !(*schema)[key].is_object()) schema->erase(key);
  }
  for (auto& [key, value] : schema->items()) {
    if (value.is_object()) remove_bounds(&value);
  }
}

TEST(PlanAnswer, TheVendorsGetTheContractWithoutItsBounds) {
  auto file = read_file(COFFERDAM_SOURCE_DIR "/contracts/plan-answer.schema.json", 1U << 20U);
  ASSERT_TRUE(file);
  auto contract = parse_json(*file, 1U << 20U);
  auto ours = parse_json(plan_answer_schema(), 1U << 20U);
  ASSERT_TRUE(contract);
  ASSERT_TRUE(ours) << ours.error().line();
  remove_bounds(&*contract);
  EXPECT_EQ(canonical(*contract), canonical(*ours));
}

void expect_strict(const Json& schema) {
  if (schema.value("type", "") == "object") {
    EXPECT_EQ(schema.at("additionalProperties"), false);
    EXPECT_EQ(schema.at("required").size(), schema.at("properties").size());
    for (const auto& [key, value] : schema.at("properties").items()) expect_strict(value);
  }
  if (schema.contains("items")) expect_strict(schema.at("items"));
}

TEST(PlanAnswer, EveryObjectIsClosedAndEveryKeyRequired) {
  auto schema = parse_json(plan_answer_schema(), 1U << 20U);
  ASSERT_TRUE(schema);
  expect_strict(*schema);
}

TEST(PlanAnswer, Decodes) {
  auto plan =
      decode_plan_answer(R"({"summary":"s","steps":[{"title":"t","detail":"d"}],"files":["f"],"risks":[],
                                     "commands":["make"]})");
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ(plan->steps.at(0).detail, "d");
  EXPECT_EQ(plan->files, std::vector<std::string>{"f"});
  EXPECT_EQ(plan->commands, std::vector<std::string>{"make"});
  auto bad =
      decode_plan_answer(R"({"summary":"s","steps":[{"title":"t"}],"files":[],"risks":[],"commands":[]})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::protocol);
  EXPECT_EQ(bad.error().what, "$.steps[0].detail: is missing");
}

}  // namespace
}  // namespace cofferdam::contract
