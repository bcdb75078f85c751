#include "contract/event.h"

#include <gtest/gtest.h>

namespace cofferdam::contract {
namespace {

Event example() {
  return {"a-1", 7, {1'000}, event_type::started, R"({"pid":3,"a":[]})"};
}

TEST(Event, EncodesToOneCanonicalLine) {
  EXPECT_EQ(encode_event(example()),
            R"({"at":"1970-01-01T00:00:01.000Z","attempt_id":"a-1","data":{"a":[],"pid":3},)"
            R"("schema":"cofferdam.event/1","seq":7,"type":"started"})");
}

TEST(Event, GoesThereAndBack) {
  auto decoded = decode_event(encode_event(example()));
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_EQ(decoded->attempt_id, "a-1");
  EXPECT_EQ(decoded->seq, 7U);
  EXPECT_EQ(decoded->at, (Timestamp{1'000}));
  EXPECT_EQ(decoded->type, event_type::started);
  EXPECT_EQ(decoded->data, R"({"a":[],"pid":3})");
}

TEST(Event, DataThatIsNoObjectIsKeptAsText) {
  const std::string inputs[] = {"",      "[]", "nonsense\xFF", "{\"a\":1,\"a\":2}", std::string(100, '['),
                                "{}\n{}"};
  for (const std::string& data : inputs) {
    Event event = example();
    event.data = data;
    const std::string line = encode_event(event);
    EXPECT_NE(line.find("\"unreadable\""), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_TRUE(decode_event(line)) << line;
  }
}

}  // namespace
}  // namespace cofferdam::contract
