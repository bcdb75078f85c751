// The lines between gateway and supervisor: strict on both sides, since the gateway reads what the box wrote.
#include <utility>

#include "contract/json.h"
#include "egress/gateway.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::json_count;
using contract::json_text;
using contract::kMaxJsonInteger;

constexpr std::size_t kMaxMethod = 32;
constexpr std::size_t kMaxPath = 512;
constexpr std::size_t kMaxRule = 256;
constexpr std::size_t kMaxRetryAfter = 64;
constexpr std::size_t kMaxFailure = 64;
constexpr std::size_t kMaxHost = 256;
constexpr std::size_t kMaxLine = 8192;

}  // namespace

std::string encode_gateway_event(const GatewayEvent& event) {
  return contract::canonical(Json{{"method", json_text(event.method, kMaxMethod)},
                                  {"path", json_text(event.path, kMaxPath)},
                                  {"rule", json_text(event.rule, kMaxRule)},
                                  {"denied", event.denied},
                                  {"limit", event.limit},
                                  {"status", event.status},
                                  {"request_bytes", json_count(event.request_bytes)},
                                  {"response_bytes", json_count(event.response_bytes)},
                                  {"took_ms", json_count(event.took_ms)},
                                  {"input_tokens", json_count(event.input_tokens)},
                                  {"output_tokens", json_count(event.output_tokens)},
                                  {"cache_read_tokens", json_count(event.cache_read_tokens)},
                                  {"cache_write_tokens", json_count(event.cache_write_tokens)},
                                  {"cost_micros", json_count(event.cost_micros)},
                                  {"uncounted_tokens", json_count(event.uncounted_tokens)},
                                  {"uncounted_micros", json_count(event.uncounted_micros)},
                                  {"retry_after", json_text(event.retry_after, kMaxRetryAfter)},
                                  {"failure", json_text(event.failure, kMaxFailure)},
                                  {"tunnelled", event.tunnelled},
                                  {"host", json_text(event.host, kMaxHost)},
                                  {"port", event.port}});
}

Result<GatewayEvent> decode_gateway_event(std::string_view line) {
  TRY(Json json, contract::parse_json(line, kMaxLine));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  GatewayEvent event;
  event.method = in.text("method", {0, kMaxMethod});
  event.path = in.text("path", {0, kMaxPath});
  event.rule = in.text("rule", {1, kMaxRule});
  event.denied = in.boolean("denied");
  event.limit = in.boolean("limit");
  event.status = static_cast<int>(in.integer("status", 0, 999));
  event.request_bytes = in.integer("request_bytes", 0, kMaxJsonInteger);
  event.response_bytes = in.integer("response_bytes", 0, kMaxJsonInteger);
  event.took_ms = in.integer("took_ms", 0, kMaxJsonInteger);
  event.input_tokens = in.integer("input_tokens", 0, kMaxJsonInteger);
  event.output_tokens = in.integer("output_tokens", 0, kMaxJsonInteger);
  event.cache_read_tokens = in.integer("cache_read_tokens", 0, kMaxJsonInteger);
  event.cache_write_tokens = in.integer("cache_write_tokens", 0, kMaxJsonInteger);
  event.cost_micros = in.integer("cost_micros", 0, kMaxJsonInteger);
  event.uncounted_tokens = in.integer("uncounted_tokens", 0, kMaxJsonInteger);
  event.uncounted_micros = in.integer("uncounted_micros", 0, kMaxJsonInteger);
  event.retry_after = in.text("retry_after", {0, kMaxRetryAfter});
  event.failure = in.text("failure", {0, kMaxFailure});
  event.tunnelled = in.boolean("tunnelled");
  event.host = in.text("host", {0, kMaxHost});
  event.port = static_cast<std::uint16_t>(in.integer("port", 0, 65535));
  in.finish();
  if (fault.failed()) return fault.error().with("gateway event");
  return event;
}

}  // namespace cofferdam::egress
