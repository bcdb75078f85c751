// The request head and the chunked coding, as bytes.
#include "egress/http_head.h"

#include <gtest/gtest.h>

#include "egress/chunked.h"

namespace cofferdam::egress {
namespace {

std::string rule_of(const std::string& bytes) {
  ParsedHead parsed = parse_request_head(bytes);
  return parsed.refusal ? parsed.refusal->rule : "";
}

// The fields between the request line with a host and the end.
std::string get(const std::string& fields) {
  return "GET /a HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}

TEST(RequestHead, IsReadAsSent) {
  ParsedHead parsed = parse_request_head(
      "POST /v1/%6D?a=b?c HTTP/1.1\r\nHost: x\r\nX-App:  \tcli \r\nCONTENT-LENGTH: 12\r\nConnection: "
      "close\r\n"
      "Expect: 100-Continue\r\n\r\n");
  ASSERT_FALSE(parsed.refusal.has_value()) << parsed.refusal->rule;
  const RequestHead& head = parsed.head;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/%6D");
  EXPECT_TRUE(head.has_query);
  EXPECT_EQ(head.query, "a=b?c");
  EXPECT_EQ(*find_field(head, "x-app"), "cli");
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_EQ(head.framing, Framing::length);
  EXPECT_FALSE(head.keep_alive);
  EXPECT_TRUE(head.expect_continue);
  ParsedHead chunked =
      parse_request_head(get("Transfer-Encoding: Chunked\r\nContent-Encoding: identity\r\n"));
  EXPECT_FALSE(chunked.refusal.has_value());
  EXPECT_EQ(chunked.head.framing, Framing::chunked);
  EXPECT_TRUE(chunked.head.keep_alive);
}

TEST(RequestHead, RefusesByRule) {
  const std::pair<std::string, const char*> cases[] = {
      {"GET /a\r\n\r\n", "http: request line"},
      {"GET  /a HTTP/1.1\r\n\r\n", "http: version"},
      {"G\"T /a HTTP/1.1\r\n\r\n", "http: method"},
      {"GET /a HTTP/1.0\r\n\r\n", "http: version"},
      {"GET /a http/1.1\r\n\r\n", "http: version"},
      {"GET /a HTTP/1.1 \r\n\r\n", "http: version"},
      {"CONNECT a:443 HTTP/1.1\r\n\r\n", "http: connect"},
      {"GET http://a/ HTTP/1.1\r\n\r\n", "http: absolute-form"},
      {"OPTIONS * HTTP/1.1\r\n\r\n", "http: absolute-form"},
      {"GET /a#b HTTP/1.1\r\n\r\n", "http: target"},
      {"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", "http: target"},
      {std::string("GET /a\0 HTTP/1.1\r\n\r\n", 20), "http: target"},
      {"GET /a HTTP/1.1\n", "http: line ending"},
      {"GET /a HTTP/1.1\rHost: x\r\n\r\n", "http: line ending"},
      {"\r\n", "http: request line"},
      {"GET /a HTTP/1.1\r\n\r\n", "http: no host"},
      {get("Host: y\r\n"), "http: repeated field"},
      {get("X: a\r\n b\r\n"), "http: obs-fold"},
      {get("X : a\r\n"), "http: field name"},
      {get(": a\r\n"), "http: field name"},
      {get("X\r\n"), "http: field name"},
      {get("X: \x01\r\n"), "http: field value"},
      {get("X: \xff\r\n"), "http: field value"},
      {get(std::string("X: \0\r\n", 6)), "http: field value"},
      {get("X: a\rb\r\n"), "http: line ending"},
      {get("X: a\nY: b\r\n"), "http: line ending"},
      {get("Content-Length: 1\r\nContent-Length: 1\r\n"), "http: two content-length"},
      {get("Content-Length: 1, 1\r\n"), "http: content-length"},
      {get("Content-Length: -1\r\n"), "http: content-length"},
      {get("Content-Length: 0x1\r\n"), "http: content-length"},
      {get("Content-Length:\r\n"), "http: content-length"},
      {get("Content-Length: 18446744073709551617\r\n"), "http: content-length"},
      {get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
       "http: content-length with transfer-encoding"},
      {get("Transfer-Encoding: identity\r\n"), "http: transfer-encoding"},
      {get("Transfer-Encoding: gzip, chunked\r\n"), "http: transfer-encoding"},
      {get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "http: repeated field"},
      {get("Content-Encoding: zstd\r\n"), "http: content-encoding"},
      {get("HTTP2-Settings: x\r\n"), "http: upgrade"},
      {get("Trailer: x\r\n"), "http: trailer"},
      {get("Expect: more\r\n"), "http: expect"},
  };
  for (const auto& [bytes, rule] : cases) EXPECT_EQ(rule_of(bytes), rule) << bytes;
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X: a\r\n";
  EXPECT_EQ(rule_of(get(many)), "http: too many fields");
  EXPECT_EQ(rule_of(get("X: " + std::string(kMaxHeadBytes, 'a') + "\r\n")), "http: head too large");
}

TEST(RequestHead, EndIsFoundWithoutWaiting) {
  EXPECT_EQ(find_head_end(""), std::string::npos);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nHost: x\r\n"), std::string::npos);
  EXPECT_EQ(find_head_end("A\r\n\r\nrest"), 5U);
  EXPECT_EQ(find_head_end("A\nB\r\n\r\n"), 2U);
  EXPECT_EQ(find_head_end("A\r\n\n"), 4U);
  EXPECT_EQ(find_head_end("\r\nA"), 2U);
}

using Verdict = ChunkedDecoder::Verdict;

// In one piece and byte by byte, which must come to the same.
Verdict decode(std::string_view in, std::string* out, std::size_t* taken) {
  ChunkedDecoder whole;
  Verdict verdict = whole.feed(in, out, taken);
  ChunkedDecoder bytewise;
  std::string again;
  Verdict last = Verdict::more;
  for (std::size_t i = 0; i < in.size() && last == Verdict::more; ++i) {
    std::size_t one = 0;
    last = bytewise.feed(in.substr(i, 1), &again, &one);
  }
  EXPECT_EQ(verdict, last) << in;
  EXPECT_EQ(*out, again) << in;
  return verdict;
}

TEST(Chunked, DecodesAndLeavesTheRest) {
  std::string out;
  std::size_t taken = 0;
  EXPECT_EQ(decode("3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\nGET", &out, &taken), Verdict::done);
  EXPECT_EQ(out, "abc0123456789");
  EXPECT_EQ(taken, 29U);
  out.clear();
  EXPECT_EQ(decode("5\r\nab", &out, &taken), Verdict::more);
}

TEST(Chunked, RefusesWhatIsNotPlain) {
  for (const char* bytes :
       {"\r\n", "x\r\n", "-1\r\n", " 3\r\nabc", "3 \r\nabc", "3;a=b\r\nabc", "3\nabc", "3\r\nabcd",
        "3\r\nabc\n", "0\r\nTrailer: x\r\n\r\n", "0\r\n\n", "000000003\r\n", "0x3\r\n"}) {
    std::string out;
    std::size_t taken = 0;
    EXPECT_EQ(decode(bytes, &out, &taken), Verdict::bad) << bytes;
  }
}

}  // namespace
}  // namespace cofferdam::egress
