#include "oauth.h"

#include "answer.h"
#include "base/clock.h"
#include "base/text.h"

namespace cofferdam::standin {
namespace {

using SteadyClock = std::chrono::steady_clock;

// RFC 4648, section 5, without padding: how JWTs are written.
std::string base64url(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned value = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      value = (value << 8U) | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j <= count; ++j) out += kLetters[(value >> (18 - 6 * j)) & 0x3FU];
  }
  return out;
}

// The member of a body that is JSON or a form. Tokens of the stand-in need no percent-decoding.
std::string body_member(const Request& request, const std::string& key) {
  const Json body = Json::parse(request.body, nullptr, false);
  if (body.is_object()) {
    const Json value = body.value(key, Json());
    return value.is_string() ? value.get<std::string>() : "";
  }
  for (const std::string& pair : split(request.body, '&')) {
    if (starts_with(pair, key + "=")) return pair.substr(key.size() + 1);
  }
  return {};
}

class OAuthApi final : public VendorApi {
 public:
  explicit OAuthApi(TokenBook* book) : book_(book) {}

  bool handle(const Request& request, Exchange& exchange) override {
    const bool jwt = request.path() == "/oauth/token";
    if (!jwt && request.path() != "/v1/oauth/token") return false;
    if (request.method != "POST" || body_member(request, "grant_type") != "refresh_token") {
      return refuse(exchange, "unsupported_grant_type", "only POST with grant_type refresh_token");
    }
    TokenBook::Grant grant;
    const TokenBook::Outcome outcome = book_->refresh(body_member(request, "refresh_token"), jwt, &grant);
    exchange.note("oauth", book_->counts());
    if (!exchange.pace(book_->script().delay)) return true;
    if (outcome == TokenBook::Outcome::reused) {
      return refuse(exchange, "invalid_grant", "this refresh token has been used already");
    }
    if (outcome == TokenBook::Outcome::unknown) {
      return refuse(exchange, "invalid_grant", "this refresh token is not known");
    }
    Json body = {{"access_token", grant.access_token},
                 {"refresh_token", grant.refresh_token},
                 {"token_type", "Bearer"},
                 {"expires_in", book_->script().expires_in.count()}};
    body[jwt ? "id_token" : "scope"] = jwt ? grant.id_token : "user:inference user:profile";
    exchange.respond(200, {{"content-type", "application/json"}}, dump(body));
    return true;
  }

 private:
  static bool refuse(Exchange& exchange, const std::string& error, const std::string& description) {
    exchange.respond(400, {{"content-type", "application/json"}},
                     dump({{"error", error}, {"error_description", description}}));
    return true;
  }

  TokenBook* const book_;
};

}  // namespace

TokenBook::TokenBook(OAuthScript script) : script_(std::move(script)) {
  if (!script_.refresh_token.empty()) refresh_tokens_[script_.refresh_token] = false;
  if (!script_.access_token.empty())
    access_tokens_[script_.access_token] = SteadyClock::now() + script_.expires_in;
}

// Claims as the Codex CLI reads them; no signature, which it does not check.
std::string TokenBook::jwt(std::uint64_t number) const {
  const std::int64_t seconds = now().ms / 1000;
  const Json claims = {{"iat", seconds},
                       {"exp", seconds + script_.expires_in.count()},
                       {"jti", std::to_string(number)},
                       {"https://api.openai.com/auth",
                        {{"chatgpt_account_id", script_.account_id},
                         {"chatgpt_plan_type", "pro"},
                         {"chatgpt_user_id", "user-stand-in"}}}};
  return base64url(R"({"alg":"none","typ":"JWT"})") + "." + base64url(dump(claims)) + ".c3RhbmQtaW4";
}

TokenBook::Outcome TokenBook::refresh(const std::string& refresh_token, bool as_jwt, Grant* grant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = refresh_tokens_.find(refresh_token);
  if (found == refresh_tokens_.end()) {
    ++unknown_;
    return Outcome::unknown;
  }
  if (found->second) {
    ++reused_;
    return Outcome::reused;
  }
  found->second = true;
  ++granted_;
  grant->refresh_token = "stand-in-refresh-" + std::to_string(granted_) + "-" + random_hex(8);
  grant->access_token = as_jwt ? jwt(granted_) : "sk-ant-oat01-stand-in-" + random_hex(16);
  if (as_jwt) grant->id_token = jwt(granted_);
  refresh_tokens_[grant->refresh_token] = false;
  access_tokens_[grant->access_token] = SteadyClock::now() + script_.expires_in;
  return Outcome::granted;
}

bool TokenBook::accepts(std::string_view access_token) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = access_tokens_.find(access_token);
  return found != access_tokens_.end() && SteadyClock::now() < found->second;
}

std::string TokenBook::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dump({{"granted", granted_}, {"reused", reused_}, {"unknown", unknown_}});
}

std::unique_ptr<VendorApi> make_oauth_api(TokenBook* book) {
  return std::make_unique<OAuthApi>(book);
}

std::string_view bearer_of(const Request& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view value = request.header("authorization");
  return starts_with(value, kScheme) ? value.substr(kScheme.size()) : std::string_view();
}

}  // namespace cofferdam::standin
