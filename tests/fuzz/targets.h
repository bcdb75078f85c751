// What the fuzzers call: the parts of the gateway that read bytes of a box, of a vendor or of another process
// of ours, each with what must hold whatever the bytes are. A target that finds it broken aborts.
#pragma once

#include <string_view>
#include <vector>

#include "egress/http_head.h"

namespace cofferdam::fuzz {

struct Target {
  std::string_view name;  // also the name of its folder in corpus/
  void (*run)(std::string_view bytes);
};
const std::vector<Target>& targets();  // all of them

// Their parts, by whose bytes they read.
const std::vector<Target>& tunnel_targets();
const std::vector<Target>& message_targets();

// An accepted head has one way to find its end, counted in the bytes and not by the parser.
void require_one_framing(std::string_view bytes, const egress::RequestHead& head);

}  // namespace cofferdam::fuzz
