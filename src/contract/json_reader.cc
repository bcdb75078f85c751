#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::contract {
namespace {

const Json& null_value() {
  static const Json kNull;
  return kNull;
}

}  // namespace

void JsonFault::fail(const std::string& path, const std::string& problem, Code code) {
  if (!error_.has_value()) error_ = make_error(code, fmt::format("{}: {}", path, problem));
}

ObjectReader::ObjectReader(const Json& value, std::string path, JsonFault* fault)
    : value_(&value), path_(std::move(path)), fault_(fault) {
  if (!value.is_object()) fault_->fail(path_, "must be an object");
}

bool ObjectReader::has(std::string_view key) const {
  if (!value_->is_object()) return false;
  auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

const Json* ObjectReader::require(const char* key) {
  read_.insert(key);
  if (!value_->is_object()) return nullptr;
  auto found = value_->find(key);
  if (found != value_->end()) return &*found;
  fail(key, "is missing");
  return nullptr;
}

const Json* ObjectReader::look_up(const char* key, Absent absent) {
  read_.insert(key);
  if (has(key)) return &*value_->find(key);
  if (absent == Absent::only_null) require(key);
  return nullptr;
}

void ObjectReader::fail(const char* key, const std::string& problem) {
  fault_->fail(json_path(path_, key), problem);
}

std::string ObjectReader::text_of(const Json& value, const std::string& path, TextBounds bounds) {
  if (!value.is_string()) {
    fault_->fail(path, "must be a string");
    return {};
  }
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() < bounds.min_bytes || text.size() > bounds.max_bytes) {
    fault_->fail(path, fmt::format("must have {} to {} bytes", bounds.min_bytes, bounds.max_bytes));
    return {};
  }
  return text;
}

std::uint64_t ObjectReader::integer_of(const Json& value, const std::string& path, std::uint64_t min,
                                       std::uint64_t max) {
  if (!value.is_number_integer()) {
    fault_->fail(path, "must be an integer");
    return min;
  }
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  const std::uint64_t number = negative ? 0 : value.get<std::uint64_t>();
  if (negative || number < min || number > max) {
    fault_->fail(path, fmt::format("must be an integer from {} to {}", min, max));
    return min;
  }
  return number;
}

Timestamp ObjectReader::timestamp_of(const Json& value, const std::string& path) {
  Timestamp out;
  std::string text = text_of(value, path, {0, 64});
  if (value.is_string() && !from_rfc3339(text, &out)) {
    fault_->fail(path, "must be a time such as 2026-11-30T08:15:00.123Z");
  }
  return out;
}

std::string ObjectReader::text(const char* key, TextBounds bounds) {
  const Json* value = require(key);
  return value == nullptr ? std::string() : text_of(*value, json_path(path_, key), bounds);
}

std::optional<std::string> ObjectReader::maybe_text(const char* key, TextBounds bounds, Absent absent) {
  const Json* value = look_up(key, absent);
  if (value == nullptr) return std::nullopt;
  return text_of(*value, json_path(path_, key), bounds);
}

void ObjectReader::constant(const char* key, std::string_view expected) {
  const Json* value = require(key);
  if (value == nullptr) return;
  if (!value->is_string() || value->get_ref<const std::string&>() != expected) {
    fail(key, fmt::format("must be \"{}\"", expected));
  }
}

void ObjectReader::null(const char* key) {
  const Json* value = require(key);
  if (value != nullptr && !value->is_null()) fail(key, "must be null");
}

std::uint64_t ObjectReader::integer(const char* key, std::uint64_t min, std::uint64_t max) {
  const Json* value = require(key);
  return value == nullptr ? min : integer_of(*value, json_path(path_, key), min, max);
}

std::optional<std::uint64_t> ObjectReader::maybe_integer(const char* key, std::uint64_t min,
                                                         std::uint64_t max, Absent absent) {
  const Json* value = look_up(key, absent);
  if (value == nullptr) return std::nullopt;
  return integer_of(*value, json_path(path_, key), min, max);
}

std::optional<double> ObjectReader::maybe_number(const char* key, double min, double max, Absent absent) {
  const Json* value = look_up(key, absent);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    fail(key, "must be a number");
    return std::nullopt;
  }
  const auto number = value->get<double>();
  if (!(number >= min && number <= max)) fail(key, fmt::format("must be a number from {} to {}", min, max));
  return number;
}

bool ObjectReader::boolean(const char* key) {
  const Json* value = require(key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, "must be true or false");
  return false;
}

Timestamp ObjectReader::timestamp(const char* key) {
  const Json* value = require(key);
  return value == nullptr ? Timestamp{} : timestamp_of(*value, json_path(path_, key));
}

std::optional<Timestamp> ObjectReader::maybe_timestamp(const char* key, Absent absent) {
  const Json* value = look_up(key, absent);
  if (value == nullptr) return std::nullopt;
  return timestamp_of(*value, json_path(path_, key));
}

std::size_t ObjectReader::choice(const char* key, const std::vector<std::string>& names) {
  const Json* value = require(key);
  if (value == nullptr) return 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (value->is_string() && value->get_ref<const std::string&>() == names[i]) return i;
  }
  fail(key, fmt::format("must be one of \"{}\"", join(names, "\", \"")));
  return 0;
}

ObjectReader ObjectReader::object(const char* key) {
  const Json* value = require(key);
  return {value == nullptr ? null_value() : *value, json_path(path_, key), fault_};
}

std::optional<ObjectReader> ObjectReader::maybe_object(const char* key, Absent absent) {
  const Json* value = look_up(key, absent);
  if (value == nullptr) return std::nullopt;
  return ObjectReader(*value, json_path(path_, key), fault_);
}

const Json* ObjectReader::array(const char* key, std::size_t min_items, std::size_t max_items) {
  const Json* value = require(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    fail(key, "must be an array");
    return nullptr;
  }
  if (value->size() < min_items || value->size() > max_items) {
    fail(key, fmt::format("must have {} to {} entries", min_items, max_items));
    return nullptr;
  }
  return value;
}

std::vector<std::string> ObjectReader::texts(const char* key, std::size_t min_items, std::size_t max_items,
                                             TextBounds each) {
  std::vector<std::string> out;
  const Json* items = array(key, min_items, max_items);
  if (items == nullptr) return out;
  for (std::size_t i = 0; i < items->size(); ++i) {
    out.push_back(text_of((*items)[i], json_path(json_path(path_, key), i), each));
  }
  return out;
}

std::vector<ObjectReader> ObjectReader::objects(const char* key, std::size_t min_items,
                                                std::size_t max_items) {
  std::vector<ObjectReader> out;
  const Json* items = array(key, min_items, max_items);
  if (items == nullptr) return out;
  for (std::size_t i = 0; i < items->size(); ++i) {
    out.emplace_back((*items)[i], json_path(json_path(path_, key), i), fault_);
  }
  return out;
}

const Json& ObjectReader::raw(const char* key) {
  const Json* value = require(key);
  return value == nullptr ? null_value() : *value;
}

void ObjectReader::finish() {
  if (!value_->is_object()) return;
  for (const auto& [key, value] : value_->items()) {
    if (read_.find(key) == read_.end()) fault_->fail(json_path(path_, key), "unknown key");
  }
}

}  // namespace cofferdam::contract
