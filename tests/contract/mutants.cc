#include <functional>
#include <random>

#include "contract/decoders.h"
#include "contract/json.h"

namespace cofferdam::testing {
namespace {

using contract::Json;
using Pointer = Json::json_pointer;
using Change = std::function<void(Json*)>;

const std::vector<Json>& replacements() {
  static const std::vector<Json> kValues{nullptr,
                                         true,
                                         "x",
                                         "",
                                         7,
                                         0,
                                         -1,
                                         1.5,
                                         1ULL << 53U,
                                         1ULL << 63U,
                                         1e308,
                                         Json::array(),
                                         Json::object(),
                                         Json::array({"x"})};
  return kValues;
}

void add_object_changes(const Json& object, const Pointer& at, std::vector<Change>* out) {
  out->push_back([at](Json* document) { (*document)[at]["extra"] = 1; });
  for (const auto& [key, value] : object.items()) {
    out->push_back([at, name = key](Json* document) { (*document)[at].erase(name); });
  }
}

void add_array_changes(const Json& array, const Pointer& at, std::vector<Change>* out) {
  if (array.empty()) return;
  out->push_back([at](Json* document) {
    const Json last = (*document)[at].back();
    (*document)[at].push_back(last);
  });
  out->push_back([at](Json* document) { (*document)[at].erase((*document)[at].size() - 1); });
}

void add_changes(const Json& value, const Pointer& at, std::vector<Change>* out) {
  for (const Json& other : replacements()) {
    out->push_back([at, other](Json* document) { (*document)[at] = other; });
  }
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    for (const std::string& other : {text + text, text + "\u00e9", " " + text}) {
      out->push_back([at, other](Json* document) { (*document)[at] = other; });
    }
  }
  if (value.is_object()) add_object_changes(value, at, out);
  if (value.is_array()) add_array_changes(value, at, out);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) add_changes(member, at / key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) add_changes(value[i], at / i, out);
  }
}

// Whether a place is still there after an earlier change: writing through a missing one would throw.
bool apply_both(const Change& first, const Change& second, Json* document) {
  try {
    first(document);
    second(document);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> mutants(const std::string& document, std::size_t pairs) {
  std::vector<std::string> out;
  auto parsed = contract::parse_json(document, 16U << 20U);
  if (!parsed) return out;
  std::vector<Change> changes;
  add_changes(*parsed, Pointer(), &changes);
  for (const Change& change : changes) {
    Json copy = *parsed;
    change(&copy);
    out.push_back(contract::canonical(copy));
  }
  // A fixed seed, and no distribution of the standard library: their results differ between libraries.
  std::mt19937_64 random(20261130);
  for (std::size_t i = 0; i < pairs; ++i) {
    Json copy = *parsed;
    const Change& first = changes[random() % changes.size()];
    const Change& second = changes[random() % changes.size()];
    if (apply_both(first, second, &copy)) out.push_back(contract::canonical(copy));
  }
  return out;
}

}  // namespace cofferdam::testing
