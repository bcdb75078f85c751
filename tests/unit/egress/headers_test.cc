// Header fields in both directions (attacks.md E9, E10).
#include "egress/headers.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

RequestHead head_with(const std::vector<HeaderField>& fields) {
  RequestHead head;
  head.method = "POST";
  head.fields = fields;
  return head;
}

TEST(VendorFields, OnlyListedOnesPass) {
  auto fields = vendor_fields(head_with({{"accept", "*/*"},
                                         {"user-agent", "box"},
                                         {"anthropic-version", "2023-06-01"},
                                         {"anthropic-beta", "a"},
                                         {"anthropic-beta", "b"},
                                         {"anthropic-dangerous-direct-browser-access", "true"},
                                         {"x-stainless-lang", "js"},
                                         {"x-app", "cli"},
                                         {"x-api-key", "k"},
                                         {"authorization", "Bearer k"},
                                         {"cookie", "c"},
                                         {"proxy-authorization", "p"},
                                         {"host", "evil.test"},
                                         {"content-type", "multipart/form-data"},
                                         {"accept-encoding", "gzip"},
                                         {"x-forwarded-for", "1.2.3.4"},
                                         {"anthropic-organization", "o"},
                                         {"x-stainless", "x"},
                                         {"te", "trailers"}}));
  ASSERT_EQ(fields.size(), 8U);
  EXPECT_EQ(fields[3].value, "a");
  EXPECT_EQ(fields[4].value, "b");
  EXPECT_EQ(fields[7].name, "x-app");
}

TEST(VendorHead, HasTheCredentialOnceAndFraming) {
  Origin origin;
  origin.host = "api.vendor.test";
  VendorCredential credential;
  credential.token = Secret("sk-1");
  Secret head = vendor_request_head(origin, "/v1/messages?beta=true", {{"accept", "*/*"}}, credential, 12);
  EXPECT_EQ(head.view(),
            "POST /v1/messages?beta=true HTTP/1.1\r\nhost: api.vendor.test\r\naccept: */*\r\n"
            "content-type: application/json\r\naccept-encoding: identity\r\nconnection: close\r\n"
            "content-length: 12\r\nx-api-key: sk-1\r\n\r\n");
}

TEST(ResponseFields, OnlyListedOnesAreShown) {
  for (const char* name :
       {"content-type", "retry-after", "request-id", "anthropic-ratelimit-requests-remaining"}) {
    EXPECT_TRUE(response_field_allowed(name)) << name;
  }
  for (const char* name :
       {"set-cookie", "location", "connection", "transfer-encoding", "content-length", "server",
        "anthropic-organization-id", "alt-svc", "trailer", "upgrade", "content-encoding"}) {
    EXPECT_FALSE(response_field_allowed(name)) << name;
  }
  EXPECT_TRUE(is_plain_value("text/event-stream; charset=utf-8"));
  EXPECT_FALSE(is_plain_value("a\r\nx: y"));
  EXPECT_FALSE(is_plain_value("\xc3\xa9"));
  EXPECT_FALSE(is_plain_value(std::string(5000, 'a')));
}

TEST(Secret, MovesAndWipes) {
  Secret first("abc");
  Secret second(std::move(first));
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
  EXPECT_EQ(second.view(), "abc");
  second.wipe();
  EXPECT_TRUE(second.empty());
}

}  // namespace
}  // namespace cofferdam::egress
