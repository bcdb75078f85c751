// What the gateway shows the vendor in place of the box's placeholder, and how the broker hands it over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/secret.h"

namespace cofferdam::egress {

enum class CredentialKind {
  anthropic_api_key,  // x-api-key
  anthropic_oauth,    // Authorization: Bearer, and the beta flag without which it is refused
  openai_api_key,     // Authorization: Bearer
  chatgpt,            // Authorization: Bearer, and ChatGPT-Account-ID
  bearer,             // Authorization: Bearer, of an internal model gateway or a destination
  basic,              // Authorization: Basic, of a destination; the token is base64 already
};
const char* credential_kind_name(CredentialKind kind);
std::optional<CredentialKind> credential_kind_from_name(std::string_view name);

// Short-lived where there is a choice; a refresh token is never one of these.
struct VendorCredential {
  CredentialKind kind = CredentialKind::anthropic_api_key;
  Secret token;
  std::string account_id;          // chatgpt only
  std::int64_t expires_at_ms = 0;  // since 1970; 0: it does not say
  std::uint64_t seq = 0;           // 1, 2, ... in the order in which the broker handed them out
};
// Whether both parts can stand in a header: Code::config otherwise, without a byte of them.
Status check_credential(const VendorCredential& credential);

// The header lines for `credential`, appended to `head`, which must have room for header_bytes() more: growth
// would leave a copy behind.
void append_credential(const VendorCredential& credential, std::string* head);
std::size_t header_bytes(const VendorCredential& credential);

// The datagrams between broker and gateway. A grant is one line of JSON and then the bytes of the token up to
// the end; the token is kept out of the JSON so that no parser copies it around.
struct Grant {
  std::optional<VendorCredential> credential;
  std::string refusal;  // why there is none; no secret in it
};
inline constexpr std::size_t kMaxGrantBytes = 32U << 10U;
Secret encode_grant(const VendorCredential& credential);
std::string encode_refusal(std::string_view why);
Result<Grant> decode_grant(std::string_view bytes);

struct RenewalRequest {
  std::uint64_t seq = 0;  // of the credential that is to be replaced
  bool rejected = false;  // the vendor answered 401 to it, so its expiry means nothing
};
std::string encode_renewal_request(const RenewalRequest& request);
Result<RenewalRequest> decode_renewal_request(std::string_view bytes);

}  // namespace cofferdam::egress
