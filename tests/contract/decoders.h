// The decoders by the names of their schemas, and the documents that they are tried with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::testing {

struct Decoder {
  const char* kind;                         // the folder of fixtures and the name of the schema
  Status (*accept)(std::string_view json);  // only the verdict
  Result<std::string> (*reencode)(
      std::string_view);  // decoded and encoded again; empty where nothing encodes
};
const std::vector<Decoder>& decoders();

struct Fixture {
  std::string name;  // "invocation/valid/claude-minimal.json"
  std::string bytes;
};
// In the order of their names.
Result<std::vector<Fixture>> read_fixtures(const std::string& root, const std::string& kind, bool valid);

// Wrong or merely different versions of a JSON document: every key dropped, every object with a key more,
// every value replaced by each of a list of others, every array one longer and one shorter, and `pairs` of
// such changes chosen by a fixed seed. The same document always gives the same list.
std::vector<std::string> mutants(const std::string& document, std::size_t pairs);

}  // namespace cofferdam::testing
