#include "egress/body_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

constexpr std::size_t kUnbounded = ~std::size_t{0};

struct Named {
  std::string_view name;
  BodyKind kind;
};
constexpr Named kKinds[] = {
    {"text", BodyKind::text},   {"bool", BodyKind::boolean},  {"true", BodyKind::yes},
    {"false", BodyKind::no},    {"null", BodyKind::null},     {"number", BodyKind::number},
    {"count", BodyKind::count}, {"any", BodyKind::any},       {"schema", BodyKind::schema},
    {"image", BodyKind::image}, {"base64", BodyKind::base64}, {"ceiling", BodyKind::ceiling},
    {"model", BodyKind::model},
};

// The tables are our own: what is misspelt in them is a choice that nothing meets, and a test looks for it.
BodyChoice unknown_choice(std::string_view text) {
  BodyChoice choice;
  choice.kind = BodyKind::denied;
  choice.word = text;
  return choice;
}

BodyChoice read_choice(std::string_view text, const BodyTable& table) {
  BodyChoice choice;
  std::string_view whole = text;
  if (text == "[]") {
    choice.empty_array = true;
    return choice;
  }
  if (!text.empty() && text.front() == '[' && text.back() == ']') {
    choice.in_array = true;
    text = text.substr(1, text.size() - 2);
  }
  if (text.empty()) return unknown_choice(whole);
  std::string_view rest = text.substr(1);
  if (text.front() == '=' || text.front() == '!') {
    choice.kind = text.front() == '=' ? BodyKind::word : BodyKind::denied;
    choice.word = rest;
    return choice;
  }
  if (text.front() == '@') {
    choice.kind = BodyKind::object;
    auto family = table.families.find(rest);
    auto shape = table.shapes.find(rest);
    if (family != table.families.end()) choice.family = &family->second;
    if (shape != table.shapes.end()) choice.shape = &shape->second;
    return choice.family == nullptr && choice.shape == nullptr ? unknown_choice(whole) : choice;
  }
  choice.max_bytes = kUnbounded;
  if (std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), choice.max_bytes);
    text = text.substr(0, colon);
  }
  for (const Named& named : kKinds) {
    if (named.name != text) continue;
    choice.kind = named.kind;
    return choice;
  }
  return unknown_choice(whole);
}

void add_shapes(const BodyRows& rows, BodyTable* table) {
  for (const BodyRow& row : rows.rows) table->shapes[row.shape];
  for (const OptIn& opt_in : rows.opt_in) {
    table->shapes[opt_in.shape].needs.push_back(opt_in.tool);
    auto& known = table->vendor_tools;
    if (std::find(known.begin(), known.end(), opt_in.tool) == known.end()) known.push_back(opt_in.tool);
  }
  for (const BodyFamily& family : rows.families) {
    BodyFamilyTable& members = table->families[family.name];
    members.family = family;
    for (const auto& [name, shape] : table->shapes) {
      std::size_t colon = name.find(':');
      if (colon == family.name.size() && starts_with(name, family.name)) {
        members.types[name.substr(colon + 1)] = &shape;
      }
    }
  }
}

// Every pointer goes into the one table, which never moves: it is filled in place.
void fill(const BodyRows& rows, BodyTable* table) {
  add_shapes(rows, table);
  for (const BodyRow& row : rows.rows) {
    std::vector<BodyChoice>& choices = table->shapes[row.shape].keys[row.key];
    std::string_view rest = row.value;
    while (!rest.empty()) {
      std::size_t end = rest.find('|');
      if (rest.substr(0, end) == "needed") {
        table->shapes[row.shape].needed.push_back(row.key);
      } else {
        choices.push_back(read_choice(rest.substr(0, end), *table));
      }
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  table->root = &table->shapes["request"];
}

struct Tables {
  Tables() {
    fill(anthropic_rows(), &anthropic);
    fill(openai_rows(), &openai);
  }
  BodyTable anthropic;
  BodyTable openai;
};

}  // namespace

const BodyTable* body_table(contract::Vendor vendor) {
  static const Tables kTables;
  if (vendor == contract::Vendor::anthropic) return &kTables.anthropic;
  return vendor == contract::Vendor::openai ? &kTables.openai : nullptr;
}

}  // namespace cofferdam::egress
