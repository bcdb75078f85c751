#include "fuzz/targets.h"

#include <algorithm>
#include <string>

#include "egress/body_policy.h"
#include "egress/chunked.h"
#include "egress/headers.h"
#include "egress/http_head.h"
#include "egress/usage_scanner.h"
#include "fuzz/require.h"

namespace cofferdam::fuzz {
namespace {

using egress::GatewayPolicy;

// An accepted head has nothing in it that another parser could read as a second line, and what goes on to the
// vendor is a subset of it.
void request_head(std::string_view bytes) {
  std::size_t end = egress::find_head_end(bytes);
  egress::ParsedHead parsed = egress::parse_request_head(bytes.substr(0, std::min(end, bytes.size())));
  if (parsed.refusal) return;
  require(end != std::string_view::npos, "a head without an end was accepted");
  const egress::RequestHead& head = parsed.head;
  require(head.target.find_first_of(" \r\n\t") == std::string::npos, "white space in a target");
  require(head.target.rfind('/', 0) == 0, "a target that is no path");
  require_one_framing(bytes.substr(0, end), head);
  for (const egress::HeaderField& field : head.fields) {
    require(field.name.find_first_of(" \r\n\t:") == std::string::npos, "a name that is none");
    require(field.value.find_first_of("\r\n") == std::string::npos, "a line break in a value");
  }
  GatewayPolicy policy;
  for (auto vendor : {contract::Vendor::anthropic, contract::Vendor::openai}) {
    policy.vendor = vendor;
    (void)egress::decide_route(policy, {head.method, head.path, head.query, head.has_query, head.upgrade});
    (void)egress::decide_fields(policy, head);
    for (const egress::HeaderField& field : egress::vendor_fields(policy, head)) {
      require(field.name != "authorization" && field.name != "x-api-key", "the box's credential passes");
    }
  }
}

// In one piece and byte by byte it comes to the same.
void chunked(std::string_view bytes) {
  using Verdict = egress::ChunkedDecoder::Verdict;
  egress::ChunkedDecoder whole;
  std::string at_once;
  std::size_t taken = 0;
  Verdict verdict = whole.feed(bytes, &at_once, &taken);
  egress::ChunkedDecoder slow;
  std::string by_byte;
  std::size_t used = 0;
  Verdict last = Verdict::more;
  while (used < bytes.size() && last == Verdict::more) {
    std::size_t one = 0;
    last = slow.feed(bytes.substr(used, 1), &by_byte, &one);
    used += one;
  }
  require(verdict == last && taken == used && at_once == by_byte, "chunks depend on how they arrive");
  require(at_once.size() <= bytes.size(), "more came out than went in");
}

// What passes would pass again and comes out as it is: no second reader sees anything else than we did.
void body(contract::Vendor vendor, std::string_view bytes) {
  GatewayPolicy policy;
  policy.vendor = vendor;
  policy.models = {"claude-sonnet-5", "claude-opus-4-8", "gpt-5.5", "gpt-6.2-sol", "m"};
  policy.max_tokens = 32'000;
  egress::BodyVerdict verdict = egress::judge_body(policy, bytes);
  if (verdict.decision.action == egress::Action::deny) {
    require(verdict.body.empty(), "a denied body goes on");
    return;
  }
  egress::BodyVerdict again = egress::judge_body(policy, verdict.body);
  require(again.decision.action == egress::Action::relay, "our own serialisation is denied");
  require(again.body == verdict.body, "our own serialisation changes");
}

void body_anthropic(std::string_view bytes) {
  body(contract::Vendor::anthropic, bytes);
}
void body_openai(std::string_view bytes) {
  body(contract::Vendor::openai, bytes);
}

// The first byte says how large the pieces are.
void usage_scanner(std::string_view bytes) {
  if (bytes.empty()) return;
  std::size_t piece = 1 + static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  for (auto form : {egress::UsageScanner::Form::event_stream, egress::UsageScanner::Form::json}) {
    egress::UsageScanner whole(form);
    whole.feed(bytes);
    whole.finish();
    egress::UsageScanner pieces(form);
    for (std::size_t i = 0; i < bytes.size(); i += piece) pieces.feed(bytes.substr(i, piece));
    pieces.finish();
    require(whole.usage().input == pieces.usage().input && whole.usage().output == pieces.usage().output,
            "counts depend on how they arrive");
  }
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = [] {
    std::vector<Target> all = {{"request_head", request_head},
                               {"chunked", chunked},
                               {"body_anthropic", body_anthropic},
                               {"body_openai", body_openai},
                               {"usage_scanner", usage_scanner}};
    for (const auto* part : {&tunnel_targets(), &message_targets()}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }();
  return kTargets;
}

}  // namespace cofferdam::fuzz
