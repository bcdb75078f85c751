#include "egress/credential.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;

constexpr std::size_t kMaxToken = 16U << 10U;
constexpr std::size_t kMaxAccount = 256;
constexpr std::size_t kMaxRefusal = 1024;

// In the order of the enumeration.
constexpr std::array<const char*, 6> kNames = {"anthropic-api-key", "anthropic-oauth", "openai-api-key",
                                               "chatgpt",           "bearer",          "basic"};

bool header_safe(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

const char* credential_kind_name(CredentialKind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

std::optional<CredentialKind> credential_kind_from_name(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<CredentialKind>(found - kNames.begin());
}

Status check_credential(const VendorCredential& credential) {
  if (credential.token.empty()) return make_error(Code::config, "the vendor's credential is empty");
  if (!header_safe(credential.token.view()) || credential.token.view().size() > kMaxToken) {
    return make_error(Code::config, "the vendor's credential has bytes that cannot stand in a header",
                      "look for white space or a line break at its end");
  }
  if (credential.kind != CredentialKind::chatgpt) return {};
  if (!credential.account_id.empty() && header_safe(credential.account_id) &&
      credential.account_id.size() <= kMaxAccount) {
    return {};
  }
  return make_error(Code::config, "the ChatGPT login does not name its account", "log in again with its CLI");
}

void append_credential(const VendorCredential& credential, std::string* head) {
  const bool key = credential.kind == CredentialKind::anthropic_api_key;
  const bool basic = credential.kind == CredentialKind::basic;
  head->append(key     ? "x-api-key: "
               : basic ? "authorization: Basic "
                       : "authorization: Bearer ")
      .append(credential.token.view())
      .append("\r\n");
  if (credential.kind == CredentialKind::chatgpt) {
    head->append("chatgpt-account-id: ").append(credential.account_id).append("\r\n");
  }
}

std::size_t header_bytes(const VendorCredential& credential) {
  return credential.token.view().size() + credential.account_id.size() + 64;
}

Secret encode_grant(const VendorCredential& credential) {
  const auto expires = static_cast<std::uint64_t>(std::max<std::int64_t>(credential.expires_at_ms, 0));
  std::string text = contract::canonical(Json{{"kind", credential_kind_name(credential.kind)},
                                              {"account_id", credential.account_id},
                                              {"expires_at_ms", contract::json_count(expires)},
                                              {"seq", contract::json_count(credential.seq)}}) +
                     "\n";
  text.reserve(text.size() + credential.token.view().size());
  text += credential.token.view();
  Secret out(text);
  wipe_string(&text);
  return out;
}

std::string encode_refusal(std::string_view why) {
  return contract::canonical(Json{{"refusal", contract::json_text(why, kMaxRefusal)}}) + "\n";
}

Result<Grant> decode_grant(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return make_error(Code::protocol, "the broker's message is incomplete");
  TRY(Json json, contract::parse_json(bytes.substr(0, end), kMaxGrantBytes));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  Grant grant;
  if (in.has("refusal")) {
    grant.refusal = in.text("refusal", {1, kMaxRefusal});
  } else {
    VendorCredential credential;
    credential.kind = static_cast<CredentialKind>(
        in.choice("kind", std::vector<std::string>(kNames.begin(), kNames.end())));
    credential.account_id = in.text("account_id", {0, kMaxAccount});
    credential.expires_at_ms = static_cast<std::int64_t>(in.integer("expires_at_ms", 0, kMaxJsonInteger));
    credential.seq = in.integer("seq", 1, kMaxJsonInteger);
    credential.token = Secret(bytes.substr(end + 1));
    grant.credential = std::move(credential);
  }
  in.finish();
  if (fault.failed()) return fault.error().with("the broker's message");
  if (grant.credential.has_value()) TRY_VOID(check_credential(*grant.credential));
  return grant;
}

std::string encode_renewal_request(const RenewalRequest& request) {
  return contract::canonical(
      Json{{"renew", contract::json_count(request.seq)}, {"rejected", request.rejected}});
}

Result<RenewalRequest> decode_renewal_request(std::string_view bytes) {
  TRY(Json json, contract::parse_json(bytes, 256));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  RenewalRequest request;
  request.seq = in.integer("renew", 1, kMaxJsonInteger);
  request.rejected = in.boolean("rejected");
  in.finish();
  if (fault.failed()) return fault.error().with("the gateway's message");
  return request;
}

}  // namespace cofferdam::egress
