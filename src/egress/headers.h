// Which header fields cross the gateway, in both directions: allow-lists, as data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "egress/credential.h"
#include "egress/http_head.h"
#include "egress/origin.h"
#include "egress/secret.h"

namespace cofferdam::egress {

// What of the box's fields goes to the vendor. Credentials, cookies and hop-by-hop fields are not on the
// list.
std::vector<HeaderField> vendor_fields(const RequestHead& head);
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
