#include "egress/capture.h"

#include <algorithm>

#include "base/clock.h"
#include "base/io.h"
#include "contract/json.h"

namespace cofferdam::egress {
namespace {

constexpr std::size_t kMaxSecret = 20U << 10U;  // a token as the broker takes it, escaped
constexpr std::string_view kRedacted = "[credential]";

void replace_all(std::string* text, std::string_view what) {
  if (what.empty()) return;
  for (std::size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) {
    text->replace(at, what.size(), kRedacted);
    at += kRedacted.size();
  }
}

// What a JSON serialiser makes of it, without the quotes.
std::string escaped(std::string_view secret) {
  std::string out = contract::canonical(contract::Json(std::string(secret)));
  return out.substr(1, out.size() - 2);
}

}  // namespace

void CapturedBody::add(std::string_view bytes) {
  bytes_ += bytes.size();
  const std::size_t room = kMaxCapturedBody + kMaxSecret - head_.size();
  head_.append(bytes.substr(0, std::min(room, bytes.size())));
}

std::string CapturedBody::shown(const std::vector<std::string_view>& secrets) const {
  std::string out = head_;
  for (std::string_view secret : secrets) {
    replace_all(&out, secret);
    std::string other = escaped(secret);
    replace_all(&out, other);
    wipe_string(&other);
  }
  if (out.size() > kMaxCapturedBody) out.resize(kMaxCapturedBody);
  return out;
}

std::string encode_capture(const GatewayEvent& event, const CapturedExchange& exchange,
                           const std::vector<std::string_view>& secrets) {
  // Escaping may make a byte six, and what is no text is replaced.
  constexpr std::size_t kRoom = 6 * kMaxCapturedBody;
  return contract::canonical(
             contract::Json{{"at", to_rfc3339(now())},
                            {"method", contract::json_text(event.method, 32)},
                            {"path", contract::json_text(event.path, 512)},
                            {"rule", contract::json_text(event.rule, 256)},
                            {"denied", event.denied},
                            {"status", event.status},
                            {"request", contract::json_text(exchange.request.shown(secrets), kRoom)},
                            {"request_bytes", contract::json_count(exchange.request.bytes())},
                            {"answer", contract::json_text(exchange.answer.shown(secrets), kRoom)},
                            {"answer_bytes", contract::json_count(exchange.answer.bytes())}}) +
         "\n";
}

void CaptureFile::append(const std::string& line) {
  if (!file_.valid()) return;
  // RLIMIT_FSIZE is the bound; its signal is ignored, so this is an error like any other.
  if (!write_all(file_.get(), line)) file_.reset();
}

}  // namespace cofferdam::egress
