// What a request body may hold, as data: one row for every key of every object, with its reason. What has no
// row is denied. The tables are derived from bodies that the pinned agent CLIs really send
// (tests/unit/egress/bodies).
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "contract/invocation.h"

namespace cofferdam::egress {

// One key of one kind of object. `value` lists what it may be, separated by '|':
//   text, text:N (at most N bytes), bool, true, false, null, number, count (an unsigned integer),
//   =word (exactly that text), @shape (an object, see below), [x] (an array of x), [] (an empty array),
//   any       data that the vendor hands on and does not interpret: what the model asked of a client's tool
//   schema    a JSON Schema: as any, but references stay inside the document
//   image     a data: URL with an image
//   base64    the bytes of something, and nothing that could be a URL
//   model     one of the policy's models
//   ceiling   the output-token ceiling: lowered to the policy's
//   needed    not a value: the key must be there
//   !rule     denied by that rule, for keys whose denial deserves a name of its own
// A shape "family:name" is an object whose "type" is `name`; "@family" is any of them.
struct BodyRow {
  std::string_view shape;
  std::string_view key;
  std::string_view value;
  std::string_view why;
};

// How the denial is called when an object's "type" is no member of the family.
struct BodyFamily {
  std::string_view name;
  std::string_view rule;
  bool type_required = true;  // otherwise an object without a type is "family:"
};

// A shape that exists only if the user's configuration has named one of the vendor's tools.
struct OptIn {
  std::string_view tool;
  std::string_view shape;
};

enum class BodyKind {
  text,
  boolean,
  yes,
  no,
  null,
  number,
  count,
  word,
  any,
  schema,
  image,
  base64,
  model,
  ceiling,
  object,
  denied,
};

struct BodyShape;
struct BodyFamilyTable;

// One alternative of a row, understood.
struct BodyChoice {
  BodyKind kind = BodyKind::null;
  bool in_array = false;
  bool empty_array = false;
  std::string_view word;  // of =word and !rule
  std::size_t max_bytes = 0;
  const BodyShape* shape = nullptr;
  const BodyFamilyTable* family = nullptr;
};

struct BodyShape {
  std::map<std::string_view, std::vector<BodyChoice>> keys;
  std::vector<std::string_view> needed;  // keys that must be there
  std::vector<std::string_view> needs;   // one of these vendor tools; empty: always there
};

struct BodyFamilyTable {
  BodyFamily family;
  std::map<std::string_view, const BodyShape*> types;
};

struct BodyTable {
  std::map<std::string_view, BodyShape> shapes;
  std::map<std::string_view, BodyFamilyTable> families;
  std::vector<std::string_view> vendor_tools;  // that can be opted in to
  const BodyShape* root = nullptr;             // the shape "request"
};

// Built once. nullptr when there is no such vendor.
const BodyTable* body_table(contract::Vendor vendor);

struct BodyRows {
  std::vector<BodyRow> rows;
  std::vector<BodyFamily> families;
  std::vector<OptIn> opt_in;
};
BodyRows anthropic_rows();
BodyRows openai_rows();

}  // namespace cofferdam::egress
