// Token counts out of streams, whatever their pieces.
#include "egress/usage_scanner.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

using Form = UsageScanner::Form;

const std::string kStream =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"usage":{"input_tokens":3,"cache_creation_input_tokens":10,)"
    R"("cache_read_input_tokens":100,"output_tokens":1}}})"
    "\n\n"
    R"(data: {"type":"content_block_delta","delta":{"text":"\"usage\": {\"output_tokens\":99999}"}})"
    "\n\n: ping\n\n"
    R"(data: {"type":"message_delta","usage":{"output_tokens":42}})"
    "\n\n";

TEST(UsageScanner, FormComesFromTheContentType) {
  EXPECT_EQ(UsageScanner::form_of("text/event-stream; charset=utf-8"), Form::event_stream);
  EXPECT_EQ(UsageScanner::form_of("application/json"), Form::json);
  EXPECT_EQ(UsageScanner::form_of("text/html"), Form::none);
}

TEST(UsageScanner, ReadsAStreamInPiecesOfAnySize) {
  for (std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{64}, kStream.size()}) {
    UsageScanner scanner(Form::event_stream);
    for (std::size_t i = 0; i < kStream.size(); i += size)
      scanner.feed(std::string_view(kStream).substr(i, size));
    scanner.finish();
    EXPECT_EQ(scanner.usage().input, 113U) << size;
    EXPECT_EQ(scanner.usage().output, 42U) << size;
    EXPECT_EQ(scanner.usage().cache_read, 100U) << size;
    EXPECT_EQ(scanner.usage().cache_write, 10U) << size;
    EXPECT_EQ(scanner.usage().cache_write_1h, 0U) << size;
  }
}

// OpenAI's last event repeats the whole answer and what was asked: its line is long.
TEST(UsageScanner, ReadsResponsesEvents) {
  for (const char* type : {"response.completed", "response.incomplete", "response.failed"}) {
    UsageScanner scanner(Form::event_stream);
    scanner.feed(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n");
    scanner.feed("data: {\"type\":\"" + std::string(type) + "\",\"response\":{\"instructions\":\"" +
                 std::string(300'000, 'i') +
                 "\",\"usage\":{\"input_tokens\":200,\"output_tokens\":20}}}\n\n");
    EXPECT_EQ(scanner.usage().input, 200U) << type;
    EXPECT_EQ(scanner.usage().output, 20U) << type;
  }
}

TEST(UsageScanner, ReadsOtherLineEndings) {
  std::string crlf;
  for (char c : kStream) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  UsageScanner scanner(Form::event_stream);
  scanner.feed(crlf);
  EXPECT_EQ(scanner.usage().output, 42U);
}

TEST(UsageScanner, PassesOverWhatIsTooLongOrNotJson) {
  UsageScanner scanner(Form::event_stream);
  scanner.feed("data: {\"usage\": garbage\n");
  scanner.feed("data: " + std::string(5U << 20U, 'x') + "\"usage\"\n");
  scanner.feed(
      "data: {\"type\":5,\"usage\":{}}\ndata: [\"usage\"]\ndata: {\"type\":\"message_start\",\"usage\":1}\n");
  scanner.feed("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-4,\"input_tokens\":1e30}}\n");
  EXPECT_EQ(scanner.usage().output, 0U);
  scanner.feed(kStream);
  EXPECT_EQ(scanner.usage().output, 42U);
}

TEST(UsageScanner, ReadsAnAnswerInOnePiece) {
  UsageScanner scanner(Form::json);
  scanner.feed(R"({"content":[],"usage":{"input_)");
  scanner.feed(R"(tokens":5,"output_tokens":6,"cache_creation":{"ephemeral_1h_input_tokens":3}}})");
  scanner.finish();
  EXPECT_EQ(scanner.usage().input, 5U);
  EXPECT_EQ(scanner.usage().output, 6U);
  EXPECT_EQ(scanner.usage().cache_write_1h, 3U);
  UsageScanner huge(Form::json);
  huge.feed(std::string(5U << 20U, ' '));
  huge.feed(R"({"usage":{"input_tokens":5}})");
  huge.finish();
  EXPECT_EQ(huge.usage().input, 0U);
}

}  // namespace
}  // namespace cofferdam::egress
