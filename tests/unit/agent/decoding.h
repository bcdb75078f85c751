// A recorded stream run through a decoder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "agent/decoder.h"
#include "base/file.h"
#include "base/text.h"
#include "contract/json.h"
#include "unit/agent/invocations.h"

namespace cofferdam::agent {

using Texts = std::vector<std::string>;

struct Decoded {
  std::vector<AgentEvent> events;
  Verdict verdict;

  Texts kinds() const {
    Texts out;
    for (const AgentEvent& event : events) out.push_back(event.kind);
    return out;
  }
  bool has(const std::string& kind) const {
    const Texts all = kinds();
    return std::find(all.begin(), all.end(), kind) != all.end();
  }
};

inline ExitStatus exit_with(int code) {
  ExitStatus status;
  status.code = code;
  return status;
}

// Every event has to be one JSON object, whatever the lines hold.
inline Decoded decode_as(const contract::InvocationFields& fields, const Texts& lines, int code) {
  Decoded out;
  auto decoder = make_decoder(built(fields));
  for (const std::string& line : lines) {
    for (AgentEvent& event : decoder->line(line)) {
      EXPECT_TRUE(contract::parse_json(event.data, 1U << 20U)) << event.data;
      EXPECT_EQ(event.data.substr(0, 1), "{");
      out.events.push_back(std::move(event));
    }
  }
  out.verdict = decoder->finish(exit_with(code));
  return out;
}

// The lines of streams/NAME.ndjson, as the CLI wrote them.
inline Texts stream(const std::string& name) {
  const std::string path =
      std::string(COFFERDAM_SOURCE_DIR) + "/tests/unit/agent/streams/" + name + ".ndjson";
  Result<std::string> text = read_file(path, 1U << 20U);
  EXPECT_TRUE(text) << text.error().line();
  return text ? split(*text, '\n') : Texts();
}

}  // namespace cofferdam::agent
