#include "egress/body_policy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "contract/json.h"
#include "egress/body_table.h"

namespace cofferdam::egress {
namespace {

using contract::json_path;
using contract::OrderedJson;
using contract::Vendor;
using Denial = std::optional<Decision>;

// The vendor's own lower bound of a thinking budget.
constexpr std::uint64_t kMinThinking = 1024;

// Where the judge stands; becomes a path only when something is denied.
struct Place {
  const Place* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;
  bool in_array = false;

  std::string path() const {
    if (parent == nullptr) return "$";
    return in_array ? json_path(parent->path(), index) : json_path(parent->path(), key);
  }
};

Denial deny_at(std::string_view rule, const Place& place) {
  return deny(std::string(rule), place.path());
}

const std::string* text_of(const OrderedJson& value) {
  return value.is_string() ? &value.get_ref<const std::string&>() : nullptr;
}

// "opus[1m]" is how Claude Code is told to ask for "opus" with a beta flag.
bool is_named_model(const GatewayPolicy& policy, const OrderedJson& value) {
  const std::string* model = text_of(value);
  return model != nullptr &&
         std::any_of(policy.models.begin(), policy.models.end(), [&](const std::string& allowed) {
           return *model == allowed || *model + "[1m]" == allowed;
         });
}

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

bool is_base64(const OrderedJson& value) {
  const std::string* text = text_of(value);
  return text != nullptr && text->find_first_not_of(kBase64) == std::string::npos;
}

bool is_inline_image(const OrderedJson& value) {
  const std::string* url = text_of(value);
  if (url == nullptr) return false;
  for (std::string_view head : {"data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,",
                                "data:image/webp;base64,"}) {
    if (!starts_with(*url, head)) continue;
    return url->find_first_not_of(kBase64, head.size()) == std::string::npos;
  }
  return false;
}

bool is_natural(const OrderedJson& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() >= 1;
}

// A value that needs no look at its members.
bool fits_scalar(const GatewayPolicy& policy, const BodyChoice& choice, const OrderedJson& value) {
  switch (choice.kind) {
    case BodyKind::text:
      return value.is_string() && text_of(value)->size() <= choice.max_bytes;
    case BodyKind::word:
      return value.is_string() && *text_of(value) == choice.word;
    case BodyKind::boolean:
      return value.is_boolean();
    case BodyKind::yes:
    case BodyKind::no:
      return value.is_boolean() && value.get<bool>() == (choice.kind == BodyKind::yes);
    case BodyKind::null:
      return value.is_null();
    case BodyKind::number:
      return value.is_number();
    case BodyKind::count:
      return value.is_number_unsigned();
    case BodyKind::any:
      return true;
    case BodyKind::image:
      return is_inline_image(value);
    case BodyKind::base64:
      return is_base64(value);
    case BodyKind::model:
      return is_named_model(policy, value);
    case BodyKind::ceiling:
      return is_natural(value) && policy.max_tokens > 0;
    case BodyKind::schema:
    case BodyKind::object:
    case BodyKind::denied:
      return false;
  }
  return false;
}

// The parser bounds the depth, and with it every recursion here.
class Judge {
 public:
  explicit Judge(const GatewayPolicy& policy) : policy_(policy) {}

  Denial object(const OrderedJson& value, const BodyShape& shape, const Place& at) const;

 private:
  Denial value(const OrderedJson& value, const std::vector<BodyChoice>& choices, const Place& at) const;
  Denial one(const OrderedJson& value, const BodyChoice& choice, const Place& at) const;
  Denial member_of(const OrderedJson& value, const BodyFamilyTable& family, const Place& at) const;
  Denial schema(const OrderedJson& value, const Place& at) const;
  Denial mismatch(const std::vector<BodyChoice>& choices, const Place& at) const;
  bool present(const BodyShape& shape) const;

  const GatewayPolicy& policy_;
};

bool Judge::present(const BodyShape& shape) const {
  if (shape.needs.empty()) return true;
  return std::any_of(shape.needs.begin(), shape.needs.end(), [&](std::string_view tool) {
    return std::find(policy_.vendor_tools.begin(), policy_.vendor_tools.end(), tool) !=
           policy_.vendor_tools.end();
  });
}

Denial Judge::object(const OrderedJson& value, const BodyShape& shape, const Place& at) const {
  for (const auto& [key, inner] : value.get_ref<const OrderedJson::object_t&>()) {
    const Place there{&at, key, 0, false};
    auto known = shape.keys.find(key);
    if (known == shape.keys.end()) return deny_at("unknown key", there);
    if (Denial denial = this->value(inner, known->second, there)) return denial;
  }
  for (std::string_view key : shape.needed) {
    if (!value.contains(std::string(key))) return deny_at("missing key", {&at, key, 0, false});
  }
  return std::nullopt;
}

// The denial is that of the alternative which was meant: the one for values of this JSON type.
Denial Judge::value(const OrderedJson& value, const std::vector<BodyChoice>& choices, const Place& at) const {
  for (const BodyChoice& choice : choices) {
    if (choice.empty_array) {
      if (value.is_array() && value.empty()) return std::nullopt;
    } else if (choice.in_array) {
      if (!value.is_array()) continue;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (Denial denial = one(value[i], choice, {&at, {}, i, true})) return denial;
      }
      return std::nullopt;
    } else if (fits_scalar(policy_, choice, value)) {
      return std::nullopt;
    } else if ((choice.kind == BodyKind::object || choice.kind == BodyKind::schema) && value.is_object()) {
      return one(value, choice, at);
    }
  }
  return mismatch(choices, at);
}

Denial Judge::mismatch(const std::vector<BodyChoice>& choices, const Place& at) const {
  for (const BodyChoice& choice : choices) {
    if (choice.kind == BodyKind::denied) return deny_at(choice.word, at);
    if (choice.kind == BodyKind::model) return deny_at("model", at);
    if (choice.kind == BodyKind::ceiling) return deny_at(at.key, at);
    if (choice.kind == BodyKind::image || choice.kind == BodyKind::base64)
      return deny_at("content source", at);
    // An object was due and there is none: nobody can say of which type it would have been.
    if (choice.family != nullptr && !choice.in_array) return deny_at(choice.family->family.rule, at);
  }
  return deny_at("value", at);
}

Denial Judge::one(const OrderedJson& value, const BodyChoice& choice, const Place& at) const {
  if (choice.kind == BodyKind::schema) return schema(value, at);
  if (choice.kind != BodyKind::object) {
    return fits_scalar(policy_, choice, value) ? std::nullopt : deny_at("value", at);
  }
  if (choice.family != nullptr) return member_of(value, *choice.family, at);
  if (!value.is_object()) return deny_at("value", at);
  // A shape that is asked for by its full name is told by its type all the same.
  auto typed = choice.shape->keys.find("type");
  if (typed != choice.shape->keys.end() && !value.contains("type")) {
    return deny_at("value", {&at, "type", 0, false});
  }
  return object(value, *choice.shape, at);
}

Denial Judge::member_of(const OrderedJson& value, const BodyFamilyTable& family, const Place& at) const {
  if (!value.is_object()) return deny_at(family.family.rule, at);
  const Place there{&at, "type", 0, false};
  auto type = value.find("type");
  std::string_view name;
  if (type != value.end()) {
    const std::string* text = text_of(*type);
    if (text == nullptr || text->empty()) return deny_at(family.family.rule, there);
    name = *text;
  } else if (family.family.type_required) {
    return deny_at(family.family.rule, there);
  }
  auto known = family.types.find(name);
  if (known == family.types.end() || !present(*known->second)) return deny_at(family.family.rule, there);
  auto typed = known->second->keys.find("type");
  if (type != value.end() && typed != known->second->keys.end()) {
    if (Denial denial = this->value(*type, typed->second, there)) return denial;
  }
  return object(value, *known->second, at);
}

// A reference that leaves the document is a URL that somebody might follow; so is what the document is
// called, and which language it is in, unless that is the standard's own.
bool stays_inside(std::string_view key, std::string_view text) {
  if (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") return starts_with(text, "#");
  if (key == "$id") return text.find_first_of(":/\\") == std::string_view::npos;
  if (key != "$schema") return true;
  return starts_with(text, "https://json-schema.org/") || starts_with(text, "http://json-schema.org/");
}

Denial Judge::schema(const OrderedJson& value, const Place& at) const {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (Denial denial = schema(value[i], {&at, {}, i, true})) return denial;
    }
  }
  if (!value.is_object()) return std::nullopt;
  for (const auto& [key, inner] : value.get_ref<const OrderedJson::object_t&>()) {
    const Place there{&at, key, 0, false};
    if (inner.is_string() && !stays_inside(key, *text_of(inner))) return deny_at("schema reference", there);
    if (Denial denial = schema(inner, there)) return denial;
  }
  return std::nullopt;
}

// Agents ask for what the model can do, not for what they need: the ceiling lowers the number instead of
// ending the attempt.
Denial lower_output(const GatewayPolicy& policy, OrderedJson* body, bool* lowered) {
  auto wanted = body->find("max_tokens");
  if (wanted == body->end()) return deny("max_tokens", "$.max_tokens");
  if (wanted->get<std::uint64_t>() <= policy.max_tokens) return std::nullopt;
  *wanted = policy.max_tokens;
  *lowered = true;
  // Thinking counts as output: a budget that the lowered ceiling cannot hold would be the vendor's 400.
  auto thinking = body->find("thinking");
  if (thinking == body->end()) return std::nullopt;
  auto budget = thinking->find("budget_tokens");
  if (budget == thinking->end() || budget->get<std::uint64_t>() < policy.max_tokens) return std::nullopt;
  if (policy.max_tokens <= kMinThinking) return deny("thinking budget", "$.thinking.budget_tokens");
  *budget = policy.max_tokens - 1;
  return std::nullopt;
}

// The backend of a ChatGPT login refuses the key: there the ceiling cannot be set, and a box that asks for
// one gets at most ours.
void bound_response(const GatewayPolicy& policy, OrderedJson* body, bool* lowered) {
  if (!body->contains("store")) (*body)["store"] = false;
  auto wanted = body->find("max_output_tokens");
  if (wanted == body->end()) {
    if (policy.credential_kind != CredentialKind::chatgpt) (*body)["max_output_tokens"] = policy.max_tokens;
  } else if (wanted->get<std::uint64_t>() > policy.max_tokens) {
    *wanted = policy.max_tokens;
    *lowered = true;
  }
}

}  // namespace

BodyVerdict judge_body(const GatewayPolicy& policy, std::string_view bytes) {
  BodyVerdict verdict;
  const BodyTable* table = body_table(policy.vendor);
  auto parsed = contract::parse_json_ordered(bytes, kMaxBodyBytes, kMaxBodyDepth);
  Denial denial;
  if (table == nullptr) {
    denial = deny("route");
  } else if (!parsed) {
    // The parser's text names the place, never the content.
    denial = deny("json", parsed.error().what, 400);
  } else if (!parsed->is_object()) {
    denial = deny("json", "$", 400);
  } else {
    denial = Judge(policy).object(*parsed, *table->root, Place());
  }
  if (!denial && !parsed->contains("model")) denial = deny("model", "$.model");
  if (!denial && policy.vendor == Vendor::anthropic) {
    denial = lower_output(policy, &*parsed, &verdict.max_tokens_lowered);
  }
  if (denial) {
    verdict.decision = *std::move(denial);
    return verdict;
  }
  if (policy.vendor == Vendor::openai) bound_response(policy, &*parsed, &verdict.max_tokens_lowered);
  verdict.decision = {Action::relay, 200, "body", {}, false};
  auto ceiling = parsed->find(policy.vendor == Vendor::openai ? "max_output_tokens" : "max_tokens");
  verdict.max_output = ceiling == parsed->end() ? policy.max_tokens : ceiling->get<std::uint64_t>();
  verdict.body = contract::in_order(*parsed);
  return verdict;
}

}  // namespace cofferdam::egress
