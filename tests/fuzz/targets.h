// What the fuzzers call: the parts of the gateway that read a box's or a vendor's bytes, each with what must
// hold whatever the bytes are. A target that finds it broken aborts.
#pragma once

#include <string_view>
#include <vector>

namespace cofferdam::fuzz {

struct Target {
  std::string_view name;  // also the name of its folder in corpus/
  void (*run)(std::string_view bytes);
};
const std::vector<Target>& targets();

}  // namespace cofferdam::fuzz
