#include "egress/login.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

using contract::Json;

// The public client ids of the two CLIs: a refresh token is bound to the client that got it.
constexpr const char* kClaudeClient = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
constexpr const char* kCodexClient = "app_EMoamEEZ73f0CkXaXp7hrann";
constexpr const char* kNoLogin = "holds no login";

// A JSON value whose strings are wiped when it goes.
struct SecretJson {
  Json value;
  SecretJson() = default;
  explicit SecretJson(Json json) : value(std::move(json)) {}
  SecretJson(SecretJson&&) = default;
  SecretJson& operator=(SecretJson&&) = default;
  SecretJson(const SecretJson&) = delete;
  SecretJson& operator=(const SecretJson&) = delete;
  ~SecretJson() { wipe_json(&value); }
};

Result<SecretJson> parse_object(std::string_view bytes) {
  // Errors of the parser can quote what they did not like.
  auto json = contract::parse_json_lenient(bytes, kMaxLoginBytes);
  if (!json || !json->is_object()) return make_error(Code::denied, "is not a JSON object");
  return SecretJson(*std::move(json));
}

const std::string* text_in(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return nullptr;
  const auto& text = found->get_ref<const std::string&>();
  return text.empty() ? nullptr : &text;
}

Secret secret_in(const Json& object, const char* key) {
  const std::string* text = text_in(object, key);
  return text == nullptr ? Secret() : Secret(*text);
}

std::int64_t number_in(const Json& object, const char* key) {
  if (!object.is_object()) return 0;
  auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return value > 0 && value < 9e15 ? static_cast<std::int64_t>(value) : 0;
}

const Json& object_in(const Json& object, const char* key) {
  static const Json kNothing;
  auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

Result<Login> claude_login(const Json& file) {
  const Json& oauth = object_in(file, "claudeAiOauth");
  Login login;
  login.kind = CredentialKind::anthropic_oauth;
  login.access = secret_in(oauth, "accessToken");
  login.refresh = secret_in(oauth, "refreshToken");
  login.expires_at_ms = number_in(oauth, "expiresAt");
  if (login.access.empty()) return make_error(Code::denied, kNoLogin, "log in with `claude` first");
  return login;
}

Result<Login> codex_login(const Json& file) {
  Login login;
  const Json& tokens = object_in(file, "tokens");
  login.access = secret_in(tokens, "access_token");
  if (const std::string* key = text_in(file, "OPENAI_API_KEY"); key != nullptr && login.access.empty()) {
    login.kind = CredentialKind::openai_api_key;
    login.access = Secret(*key);
    return login;
  }
  login.kind = CredentialKind::chatgpt;
  login.refresh = secret_in(tokens, "refresh_token");
  if (const std::string* account = text_in(tokens, "account_id")) login.account_id = *account;
  login.expires_at_ms = jwt_expiry_ms(login.access.view());
  if (login.access.empty()) return make_error(Code::denied, kNoLogin, "log in with `codex login` first");
  return login;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

// RFC 4648, section 5, without padding. Empty for what is not.
std::string decode_base64url(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  unsigned bits = 0;
  int count = 0;
  for (char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return {};
    bits = (bits << 6U | static_cast<unsigned>(digit)) & 0xFFFFU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU));
  }
  return out;
}

}  // namespace

const char* default_token_url(LoginShape shape) {
  return shape == LoginShape::claude ? "https://platform.claude.com/v1/oauth/token"
                                     : "https://auth.openai.com/oauth/token";
}

void wipe_json(Json* json) {
  if (json->is_string()) wipe_string(&json->get_ref<std::string&>());
  if (!json->is_structured()) return;
  for (Json& member : *json) wipe_json(&member);
}

std::int64_t jwt_expiry_ms(std::string_view token) {
  const std::size_t first = token.find('.');
  if (first == std::string_view::npos) return 0;
  const std::size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return 0;
  std::string claims = decode_base64url(token.substr(first + 1, second - first - 1));
  auto json = parse_object(claims);
  wipe_string(&claims);
  return json ? number_in(json->value, "exp") * 1000 : 0;
}

Result<Login> parse_login(LoginShape shape, std::string_view file) {
  TRY(SecretJson json, parse_object(file));
  return shape == LoginShape::claude ? claude_login(json.value) : codex_login(json.value);
}

CredentialKind kind_of_key(LoginShape shape, bool bearer, std::string_view key) {
  if (bearer) return CredentialKind::bearer;
  if (shape == LoginShape::codex) return CredentialKind::openai_api_key;
  return starts_with(key, "sk-ant-oat") ? CredentialKind::anthropic_oauth : CredentialKind::anthropic_api_key;
}

Secret renewal_request_body(LoginShape shape, const Secret& refresh) {
  SecretJson json(Json{{"grant_type", "refresh_token"},
                       {"refresh_token", std::string(refresh.view())},
                       {"client_id", shape == LoginShape::claude ? kClaudeClient : kCodexClient}});
  std::string text = contract::canonical(json.value);
  Secret out(text);
  wipe_string(&text);
  return out;
}

Result<Renewal> parse_renewal(LoginShape shape, std::string_view answer, Timestamp at) {
  TRY(SecretJson json, parse_object(answer));
  Renewal renewal;
  renewal.access = secret_in(json.value, "access_token");
  renewal.refresh = secret_in(json.value, "refresh_token");
  renewal.identity = secret_in(json.value, "id_token");
  if (renewal.access.empty()) return make_error(Code::protocol, "the answer holds no token");
  const std::int64_t seconds = number_in(json.value, "expires_in");
  if (seconds > 0) renewal.expires_at_ms = at.ms + seconds * 1000;
  if (shape == LoginShape::codex) renewal.expires_at_ms = jwt_expiry_ms(renewal.access.view());
  return renewal;
}

std::string renewal_error(std::string_view answer) {
  auto json = parse_object(answer);
  if (!json) return {};
  const std::string* word = text_in(json->value, "error");
  if (word == nullptr) word = text_in(object_in(json->value, "error"), "type");
  if (word == nullptr || word->size() > 40) return {};
  const bool plain =
      std::all_of(word->begin(), word->end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return plain ? *word : "";
}

Result<Secret> renewed_file(LoginShape shape, std::string_view file, const Renewal& renewal, Timestamp at) {
  TRY(SecretJson json, parse_object(file));
  const bool claude = shape == LoginShape::claude;
  Json& tokens = json.value[claude ? "claudeAiOauth" : "tokens"];
  if (!tokens.is_object()) return make_error(Code::denied, kNoLogin);
  const auto set = [&tokens](const char* key, const Secret& value) {
    if (!value.empty()) tokens[key] = std::string(value.view());
  };
  set(claude ? "accessToken" : "access_token", renewal.access);
  set(claude ? "refreshToken" : "refresh_token", renewal.refresh);
  if (claude) {
    tokens["expiresAt"] = renewal.expires_at_ms;
  } else {
    set("id_token", renewal.identity);
    json.value["last_refresh"] = to_rfc3339(at);
  }
  std::string text = json.value.dump(2) + "\n";
  Secret out(text);
  wipe_string(&text);
  return out;
}

}  // namespace cofferdam::egress
