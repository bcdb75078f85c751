// Bodies that the pinned CLIs really sent (bodies/, shortened): they pass, as they are, and nothing can be
// added to them at any place.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/text.h"
#include "contract/json.h"
#include "egress/body_policy.h"
#include "egress/body_table.h"

namespace cofferdam::egress {
namespace {

using contract::json_path;
using contract::OrderedJson;

struct Recorded {
  std::string name;
  std::string text;
  OrderedJson body;
};

std::vector<Recorded> recorded(const std::string& prefix) {
  std::vector<Recorded> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(COFFERDAM_SOURCE_DIR "/tests/unit/egress/bodies")) {
    Recorded one;
    one.name = entry.path().filename().string();
    if (!starts_with(one.name, prefix)) continue;
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    one.text = std::string(trim(text.str()));
    auto parsed = contract::parse_json_ordered(one.text, kMaxBodyBytes, kMaxBodyDepth);
    EXPECT_TRUE(parsed.has_value()) << one.name;
    if (parsed) one.body = std::move(*parsed);
    out.push_back(std::move(one));
  }
  EXPECT_FALSE(out.empty()) << prefix;
  return out;
}

bool is_codex(const Recorded& one) {
  return one.name.find("codex") != std::string::npos;
}

GatewayPolicy policy_for(const Recorded& one) {
  GatewayPolicy policy;
  policy.vendor = is_codex(one) ? contract::Vendor::openai : contract::Vendor::anthropic;
  policy.credential_kind = is_codex(one) ? CredentialKind::openai_api_key : CredentialKind::anthropic_api_key;
  policy.models = {"claude-sonnet-5", "claude-opus-4-8[1m]", "claude-haiku-4-5",
                   "gpt-5.5",         "gpt-6.2-sol",         "gpt-unknown"};
  policy.max_tokens = 64'000;
  return policy;
}

std::vector<Recorded> both() {
  std::vector<Recorded> out = recorded("claude-");
  for (Recorded& one : recorded("codex-")) out.push_back(std::move(one));
  return out;
}

// What the vendor is handed: the body itself, with the ceiling where the CLI names none.
std::string expected(const Recorded& one) {
  if (!is_codex(one)) return one.text;
  return one.text.substr(0, one.text.size() - 1) + R"(,"max_output_tokens":64000})";
}

TEST(RecordedBodies, PassAsTheyAre) {
  for (const Recorded& one : both()) {
    BodyVerdict verdict = judge_body(policy_for(one), one.text);
    EXPECT_EQ(verdict.decision.action, Action::relay)
        << one.name << ": " << verdict.decision.rule << " at " << verdict.decision.where;
    EXPECT_EQ(verdict.body, expected(one)) << one.name;
    EXPECT_LT(one.text.size(), 30'000U) << one.name;
  }
}

// What the CLIs can do with server-side tools: nothing, until the user says so.
TEST(RecordedBodies, ServerSideToolsNeedOptIn) {
  for (const Recorded& one : recorded("opt-in-")) {
    GatewayPolicy policy = policy_for(one);
    BodyVerdict denied = judge_body(policy, one.text);
    EXPECT_EQ(denied.decision.rule, "server-side tool") << one.name;
    policy.vendor_tools = {is_codex(one) ? "web_search" : "web_search_20250305"};
    BodyVerdict allowed = judge_body(policy, one.text);
    EXPECT_EQ(allowed.decision.action, Action::relay)
        << one.name << ": " << allowed.decision.rule << " at " << allowed.decision.where;
    policy.vendor_tools = {"web_fetch_20250910"};
    EXPECT_EQ(judge_body(policy, one.text).decision.rule, "server-side tool") << one.name;
  }
}

// Below these keys lies data that the vendor hands on: tool inputs and JSON Schemas.
bool is_opaque(std::string_view key) {
  constexpr std::string_view kOpaque[] = {"input_schema", "parameters", "schema", "arguments"};
  return std::find(std::begin(kOpaque), std::end(kOpaque), key) != std::end(kOpaque);
}

// Calls `act` for every object that the policy judges, with its path.
void each_object(OrderedJson* value, const std::string& path,
                 const std::function<void(OrderedJson*, const std::string&)>& act) {
  if (value->is_array()) {
    for (std::size_t i = 0; i < value->size(); ++i) each_object(&(*value)[i], json_path(path, i), act);
  }
  if (!value->is_object()) return;
  const bool tool_use = value->value("type", "") == "tool_use";
  for (auto& [key, inner] : value->get_ref<OrderedJson::object_t&>()) {
    if (is_opaque(key) || (tool_use && key == "input")) continue;
    each_object(&inner, json_path(path, key), act);
  }
  act(value, path);
}

TEST(RecordedBodies, AnUnknownKeyIsDeniedAtEveryObject) {
  std::size_t places = 0;
  for (Recorded& one : both()) {
    const GatewayPolicy policy = policy_for(one);
    each_object(&one.body, "$", [&](OrderedJson* object, const std::string& path) {
      OrderedJson kept = *object;
      (*object)["x_unknown"] = 1;
      BodyVerdict verdict = judge_body(policy, contract::in_order(one.body));
      EXPECT_EQ(verdict.decision.action, Action::deny) << one.name << path;
      EXPECT_EQ(verdict.decision.rule, "unknown key") << one.name << path;
      EXPECT_EQ(verdict.decision.where, path + ".x_unknown") << one.name;
      *object = std::move(kept);
      ++places;
    });
  }
  EXPECT_GT(places, 700U);
}

TEST(RecordedBodies, AnUnknownTypeIsDeniedAtEveryObject) {
  for (Recorded& one : both()) {
    const GatewayPolicy policy = policy_for(one);
    each_object(&one.body, "$", [&](OrderedJson* object, const std::string& path) {
      if (!object->contains("type")) return;
      OrderedJson kept = *object;
      (*object)["type"] = "web_fetch_20250910";
      BodyVerdict verdict = judge_body(policy, contract::in_order(one.body));
      EXPECT_EQ(verdict.decision.action, Action::deny) << one.name << path;
      EXPECT_EQ(verdict.decision.where, path + ".type") << one.name;
      *object = std::move(kept);
    });
  }
}

// A word that the reader of the tables does not know becomes a denial: none may be there but the ones that
// are meant. And a key without a reason is a key that nobody has thought about.
TEST(BodyTable, EveryRowIsUnderstoodAndHasItsReason) {
  for (auto [vendor, rows] : {std::pair{contract::Vendor::anthropic, anthropic_rows()},
                              std::pair{contract::Vendor::openai, openai_rows()}}) {
    std::size_t meant = 0;
    for (const BodyRow& row : rows.rows) {
      if (!row.value.empty() && row.value.front() == '!') ++meant;
      EXPECT_TRUE(!row.why.empty() || row.key == "type") << row.shape << row.key;
    }
    std::size_t found = 0;
    std::size_t keys = 0;
    for (const auto& [name, shape] : body_table(vendor)->shapes) {
      for (const auto& [key, choices] : shape.keys) {
        ++keys;
        EXPECT_FALSE(choices.empty()) << name << key;
        for (const BodyChoice& choice : choices) found += choice.kind == BodyKind::denied ? 1U : 0U;
      }
    }
    EXPECT_EQ(found, meant);
    EXPECT_EQ(keys, rows.rows.size()) << "a key has two rows";
  }
  EXPECT_EQ(body_table(contract::Vendor::none), nullptr);
}

}  // namespace
}  // namespace cofferdam::egress
