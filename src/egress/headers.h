// Which header fields cross the gateway, in both directions: allow-lists, as data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/credential.h"
#include "egress/gateway.h"
#include "egress/http_head.h"
#include "egress/origin.h"
#include "egress/policy.h"
#include "egress/secret.h"

namespace cofferdam::egress {

// What has to be right with the box's fields before anything else is read: the API version, and beta or
// feature flags that the pinned CLIs are known to send. A denial names the field.
std::optional<Decision> decide_fields(const GatewayPolicy& policy, const RequestHead& head);
// What of the box's fields goes to the vendor. Credentials, cookies and hop-by-hop fields are not on the
// list; the flag that goes with the credential is added, or taken away when the credential is of another
// kind.
std::vector<HeaderField> vendor_fields(const GatewayPolicy& policy, const RequestHead& head);

// The whole head of the vendor's request, the real credential in it; the content type is ours, as the body
// is.
Secret vendor_request_head(const Origin& origin, std::string_view target,
                           const std::vector<HeaderField>& fields, const VendorCredential& credential,
                           std::size_t body_bytes);

// Whether a field of the vendor's answer is shown to the box. `name` in lower case.
bool response_field_allowed(std::string_view name);
// Whether a field's value can be written to the box as it is.
bool is_plain_value(std::string_view value);

const char* reason_phrase(int status);

}  // namespace cofferdam::egress
