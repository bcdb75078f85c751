// The messages between our own processes. Nobody hostile writes them, unless one of the processes has been
// taken over: then they are all that it can say to the next one.
#include <string>

#include "egress/credential.h"
#include "egress/gateway.h"
#include "egress/resolver.h"
#include "fuzz/require.h"
#include "fuzz/targets.h"

namespace cofferdam::fuzz {
namespace {

bool breaks_lines(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

void grant(std::string_view bytes) {
  auto read = egress::decode_grant(bytes);
  if (!read) return;
  require(read->credential.has_value() == read->refusal.empty(), "a grant that is neither or both");
  if (!read->credential.has_value()) return;
  const egress::VendorCredential& credential = *read->credential;
  require(!credential.token.view().empty() && !breaks_lines(credential.token.view()),
          "a token that is more than a value");
  require(!breaks_lines(credential.account_id), "an account that is more than a value");
  require(credential.seq > 0 && credential.expires_at_ms >= 0, "a number out of its range");
  auto again = egress::decode_grant(egress::encode_grant(credential).view());
  require(again && again->credential.has_value(), "our own grant is refused");
  require(again->credential->token.view() == credential.token.view() &&
              again->credential->account_id == credential.account_id &&
              again->credential->kind == credential.kind && again->credential->seq == credential.seq,
          "our own grant changes");
}

void renewal_request(std::string_view bytes) {
  auto read = egress::decode_renewal_request(bytes);
  if (!read) return;
  auto again = egress::decode_renewal_request(egress::encode_renewal_request(*read));
  require(again && again->seq == read->seq && again->rejected == read->rejected, "a request changes");
}

void resolver_answer(std::string_view bytes) {
  auto read = egress::decode_resolver_answer(bytes);
  if (!read) return;
  require(read->addresses.size() <= 2 * egress::kMaxAddresses, "more addresses than the bound");
  for (const std::string& address : read->addresses) {
    require(!address.empty() && address.size() <= 64, "an address beyond its bound");
  }
  auto again = egress::decode_resolver_answer(egress::encode_resolver_answer(*read));
  require(again && again->id == read->id && again->addresses == read->addresses, "an answer changes");
}

void gateway_event(std::string_view bytes) {
  auto read = egress::decode_gateway_event(bytes);
  if (!read) return;
  require(!read->rule.empty() && read->status >= 0 && read->status <= 999, "an event without a meaning");
  const std::string line = egress::encode_gateway_event(*read);
  require(line.find('\n') == std::string::npos, "an event of two lines");
  auto again = egress::decode_gateway_event(line);
  require(again && egress::encode_gateway_event(*again) == line, "an event changes");
}

}  // namespace

const std::vector<Target>& message_targets() {
  static const std::vector<Target> kTargets = {{"grant", grant},
                                               {"renewal_request", renewal_request},
                                               {"resolver_answer", resolver_answer},
                                               {"gateway_event", gateway_event}};
  return kTargets;
}

}  // namespace cofferdam::fuzz
