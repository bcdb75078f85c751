#include "egress/headers.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

constexpr std::array<std::string_view, 6> kRequestFields = {"accept",
                                                            "user-agent",
                                                            "anthropic-version",
                                                            "anthropic-beta",
                                                            "anthropic-dangerous-direct-browser-access",
                                                            "x-app"};
constexpr std::string_view kRequestPrefix = "x-stainless-";
constexpr std::array<std::string_view, 3> kResponseFields = {"content-type", "retry-after", "request-id"};
constexpr std::string_view kResponsePrefix = "anthropic-ratelimit-";

template <std::size_t N>
bool listed(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<HeaderField> vendor_fields(const RequestHead& head) {
  std::vector<HeaderField> out;
  for (const HeaderField& field : head.fields) {
    if (listed(kRequestFields, field.name) || starts_with(field.name, kRequestPrefix)) out.push_back(field);
  }
  return out;
}

Secret vendor_request_head(const Origin& origin, std::string_view target,
                           const std::vector<HeaderField>& fields, const VendorCredential& credential,
                           std::size_t body_bytes) {
  std::string text = "POST " + std::string(target) + " HTTP/1.1\r\nhost: " + origin.authority() + "\r\n";
  for (const HeaderField& field : with_credential_flags(credential.kind, fields))
    text += field.name + ": " + field.value + "\r\n";
  text +=
      "content-type: application/json\r\naccept-encoding: identity\r\nconnection: close\r\ncontent-length: " +
      std::to_string(body_bytes) + "\r\n";
  // Reserved before the credential goes in: growth would leave a copy behind.
  text.reserve(text.size() + header_bytes(credential) + 2);
  append_credential(credential, &text);
  text.append("\r\n");
  Secret out(text);
  wipe_string(&text);
  return out;
}

bool response_field_allowed(std::string_view name) {
  return listed(kResponseFields, name) || starts_with(name, kResponsePrefix);
}

bool is_plain_value(std::string_view value) {
  return value.size() <= 4096 &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace cofferdam::egress
