#include "contract/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

bool is_plain_key(std::string_view key) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !key.empty() && key.size() <= 64 && key.find_first_not_of(kPlain) == std::string_view::npos;
}

struct Rules {
  bool keys_once = true;     // otherwise the last of duplicate keys wins
  bool nul_allowed = false;  // U+0000 inside strings
  bool exact = true;         // otherwise integers beyond 64 bits become doubles
};
constexpr Rules kStrict{true, false, true};
constexpr Rules kLenient{false, true, false};
constexpr Rules kForwarded{true, true, true};

// A member whose key the frame has seen to be new, or to be overwritten.
Json& put_member(Json* object, const std::string& key, Json value) {
  return (*object)[key] = std::move(value);
}
// Looking for the key would be a search from the start of the list. And the list would grow by copying every
// member with all that is below it, because a constant key cannot be moved without a chance to fail.
OrderedJson& put_member(OrderedJson* object, const std::string& key, OrderedJson value) {
  using List = std::vector<OrderedJson::object_t::value_type>;
  List& members = object->get_ref<OrderedJson::object_t&>();
  if (members.size() == members.capacity()) {
    List grown;
    grown.reserve(std::max<std::size_t>(4, 2 * members.size()));
    for (auto& [name, member] : members) grown.emplace_back(name, std::move(member));
    members.swap(grown);
  }
  return members.emplace_back(key, std::move(value)).second;
}

// Builds the document from the parser's events. The library's own builder silently keeps the last of
// duplicate keys and knows neither depth nor path.
template <class Doc>
class Builder final : public nlohmann::json_sax<Doc> {
 public:
  using string_t = typename Doc::string_t;
  using binary_t = typename Doc::binary_t;

  Builder(std::size_t max_depth, Rules rules) : max_depth_(max_depth), rules_(rules) {}

  bool null() override { return add(Doc(nullptr)) != nullptr; }
  bool boolean(bool value) override { return add(Doc(value)) != nullptr; }
  bool number_integer(std::int64_t value) override { return add(Doc(value)) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return add(Doc(value)) != nullptr; }
  bool number_float(double value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t elements) override;
  bool key(string_t& name) override;
  bool end_object() override { return end(); }
  bool start_array(std::size_t elements) override;
  bool end_array() override { return end(); }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::json::exception& problem) override;

  Doc& root() { return root_; }
  const JsonFault& fault() const { return fault_; }

 private:
  struct Frame {
    Doc* container;
    std::string key;
    std::set<std::string, std::less<>> seen;
  };

  Doc* add(Doc value);
  bool start(Doc container);
  bool end() {
    frames_.pop_back();
    return true;
  }
  bool refuse(const std::string& problem) {
    fault_.fail(path(), problem);
    return false;
  }
  std::string path() const;

  std::size_t max_depth_;
  Rules rules_;
  Doc root_;
  std::vector<Frame> frames_;
  JsonFault fault_;
};

template <class Doc>
Doc* Builder<Doc>::add(Doc value) {
  if (frames_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Frame& frame = frames_.back();
  if (frame.container->is_array()) {
    frame.container->push_back(std::move(value));
    return &frame.container->back();
  }
  return &put_member(frame.container, frame.key, std::move(value));
}

template <class Doc>
bool Builder<Doc>::start(Doc container) {
  if (frames_.size() >= max_depth_) return refuse(fmt::format("nested deeper than {}", max_depth_));
  frames_.push_back({add(std::move(container)), {}, {}});
  return true;
}

template <class Doc>
bool Builder<Doc>::start_object(std::size_t /*elements*/) {
  return start(Doc::object());
}
template <class Doc>
bool Builder<Doc>::start_array(std::size_t /*elements*/) {
  return start(Doc::array());
}

template <class Doc>
bool Builder<Doc>::number_float(double value, const string_t& text) {
  // The lexer turns integers that do not fit into doubles: it would round what it was told.
  if (rules_.exact && text.find_first_of(".eE") == std::string::npos) {
    return refuse("an integer that does not fit 64 bits");
  }
  if (!std::isfinite(value)) return refuse("a number that does not fit a double");
  return add(Doc(value)) != nullptr;
}

template <class Doc>
bool Builder<Doc>::string(string_t& value) {
  if (!rules_.nul_allowed && value.find('\0') != std::string::npos) {
    return refuse("a string that contains NUL");
  }
  return add(Doc(std::move(value))) != nullptr;
}

template <class Doc>
bool Builder<Doc>::binary(binary_t& /*value*/) {
  return refuse("binary data");
}

template <class Doc>
bool Builder<Doc>::key(string_t& name) {
  Frame& frame = frames_.back();
  frame.key = name;
  if (!rules_.keys_once) return true;
  if (name.find('\0') != std::string::npos) return refuse("a key that contains NUL");
  return frame.seen.insert(name).second || refuse("duplicate key");
}

template <class Doc>
bool Builder<Doc>::parse_error(std::size_t position, const std::string& /*last_token*/,
                               const nlohmann::json::exception& problem) {
  // 406: out_of_range, a number that is infinite as a double. The library's text quotes the input, ours does
  // not.
  if (problem.id == 406)
    return refuse(fmt::format("a number that does not fit a double, at byte {}", position));
  return refuse(fmt::format("not JSON in UTF-8, at byte {}", position));
}

// Of the value that is being read: inside the innermost array it is not there yet.
template <class Doc>
std::string Builder<Doc>::path() const {
  std::string out = "$";
  for (const Frame& frame : frames_) {
    if (frame.container->is_array()) {
      out = json_path(std::move(out), frame.container->size() - (&frame == &frames_.back() ? 0U : 1U));
    } else if (!frame.key.empty()) {
      out = json_path(std::move(out), frame.key);
    }
  }
  return out;
}

template <class Doc>
Result<Doc> parse(std::string_view text, std::size_t max_bytes, std::size_t max_depth, Rules rules) {
  if (text.size() > max_bytes) {
    return make_error(Code::protocol, fmt::format("$: larger than {} bytes", max_bytes));
  }
  // The lexer takes a raw NUL for the end of input and skips a byte order mark.
  if (auto at = text.find('\0'); at != std::string_view::npos) {
    return make_error(Code::protocol, fmt::format("$: not JSON: a NUL byte at byte {}", at));
  }
  if (starts_with(text, "\xEF\xBB\xBF"))
    return make_error(Code::protocol, "$: starts with a byte order mark");
  Builder<Doc> builder(max_depth, rules);
  const bool parsed = Doc::sax_parse(text.begin(), text.end(), &builder);
  if (builder.fault().failed()) return builder.fault().error();
  if (!parsed) return make_error(Code::protocol, "$: not JSON");
  return std::move(builder.root());
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::size_t max_bytes, std::size_t max_depth) {
  return parse<Json>(text, max_bytes, max_depth, kStrict);
}

Result<Json> parse_json_lenient(std::string_view text, std::size_t max_bytes, std::size_t max_depth) {
  return parse<Json>(text, max_bytes, max_depth, kLenient);
}

Result<OrderedJson> parse_json_ordered(std::string_view text, std::size_t max_bytes, std::size_t max_depth) {
  return parse<OrderedJson>(text, max_bytes, max_depth, kForwarded);
}

std::string in_order(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string canonical(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_text(std::string_view bytes, std::size_t max_bytes) {
  const bool as_is =
      bytes.size() <= max_bytes && bytes.find('\0') == std::string_view::npos && is_valid_utf8(bytes);
  return as_is ? Json(std::string(bytes)) : Json(printable(bytes, max_bytes));
}

Json json_count(std::uint64_t value) {
  return Json(std::min(value, kMaxJsonInteger));
}

std::string json_path(std::string parent, std::string_view key) {
  if (is_plain_key(key)) {
    parent.append(1, '.').append(key);
  } else {
    parent.append(1, '[').append(canonical(Json(printable(key, 64)))).append(1, ']');
  }
  return parent;
}

std::string json_path(std::string parent, std::size_t index) {
  parent.append(1, '[').append(std::to_string(index)).append(1, ']');
  return parent;
}

}  // namespace cofferdam::contract
