#include "egress/broker_setup.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::CredentialSource;
using contract::Json;

constexpr std::size_t kMaxBrokerSetup = 60U << 10U;  // fits the buffer of a pipe
constexpr const char* kClaudeVariable = "ANTHROPIC_API_KEY";
constexpr const char* kClaudeLoginVariable = "CLAUDE_CODE_OAUTH_TOKEN";

// Not a secret: only looked at.
std::string place(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value == nullptr || *value != '/' ? "" : value;
}

// Where the vendor's own CLI keeps its login.
Result<std::string> login_file(LoginShape shape) {
  const bool claude = shape == LoginShape::claude;
  const std::string own = place(claude ? "CLAUDE_CONFIG_DIR" : "CODEX_HOME");
  const char* name = claude ? "/.credentials.json" : "/auth.json";
  if (!own.empty()) return own + name;
  const std::string home = place("HOME");
  if (!home.empty()) return home + (claude ? "/.claude" : "/.codex") + name;
  return make_error(Code::config, "no place for the login: HOME is not set",
                    "name the file in credential_file");
}

Result<Secret> from_environment(const contract::VendorConfig& vendor, LoginShape shape,
                                const TakeVariable& take) {
  if (auto value = take(vendor.credential_env)) return *std::move(value);
  if (shape == LoginShape::claude && vendor.credential_env == kClaudeVariable && !vendor.bearer) {
    if (auto value = take(kClaudeLoginVariable)) return *std::move(value);
  }
  return make_error(Code::config,
                    fmt::format("no credential: the variable {} is not set", vendor.credential_env),
                    fmt::format("put the key into the environment variable {}, or choose another source with "
                                "`credential` in the configuration (docs/credentials.md)",
                                vendor.credential_env));
}

const std::vector<std::string>& source_names() {
  static const std::vector<std::string> kNames{"env", "file", "command", "keyring"};
  return kNames;
}

}  // namespace

std::optional<Secret> take_variable(const std::string& name) {
  char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): before any thread
  if (value == nullptr) return std::nullopt;
  const std::size_t size = std::strlen(value);
  std::optional<Secret> out;
  if (size > 0) out.emplace(std::string_view(value, size));
  OPENSSL_cleanse(value, size);
  ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  return out;
}

Result<BrokerSetup> plan_broker(const contract::VendorConfig& vendor, LoginShape shape,
                                const TakeVariable& take) {
  BrokerSetup setup;
  setup.source = vendor.credential;
  setup.shape = shape;
  setup.bearer = vendor.bearer;
  setup.command = vendor.credential_command;
  setup.keyring = vendor.keyring;
  setup.way = {vendor.ca_bundle, vendor.extra_ca_bundle, vendor.proxy};
  setup.token_url = vendor.token_url.empty() ? default_token_url(shape) : vendor.token_url;
  if (vendor.credential == CredentialSource::env) {
    TRY(setup.value, from_environment(vendor, shape, take));
  }
  if (vendor.credential == CredentialSource::file) {
    setup.file = vendor.credential_file;
    if (setup.file.empty()) {
      TRY(setup.file, login_file(shape));
    }
  }
  return setup;
}

Result<BrokerSetup> plan_broker(const contract::DestinationCredential& destination,
                                const TakeVariable& take) {
  BrokerSetup setup;
  setup.source = destination.source;
  setup.shape = LoginShape::codex;  // never a login's, since there is no file
  setup.bearer = true;
  setup.basic = destination.basic;
  setup.command = destination.command;
  setup.keyring = destination.keyring;
  setup.token_url = default_token_url(setup.shape);
  if (destination.source != CredentialSource::env) return setup;
  auto value = take(destination.env);
  if (!value) {
    return make_error(Code::config, fmt::format("no credential: the variable {} is not set", destination.env),
                      "set it, or choose another source with `credential` in the configuration");
  }
  setup.value = *std::move(value);
  return setup;
}

Result<Secret> encode_broker_setup(const BrokerSetup& setup) {
  std::string text =
      contract::canonical(Json{{"source", source_names().at(static_cast<std::size_t>(setup.source))},
                               {"shape", setup.shape == LoginShape::claude ? "claude" : "codex"},
                               {"bearer", setup.bearer},
                               {"basic", setup.basic},
                               {"file", contract::json_text(setup.file, 4096)},
                               {"command", setup.command},
                               {"keyring", contract::json_text(setup.keyring, 1024)},
                               {"token_url", contract::json_text(setup.token_url, 512)},
                               {"ca_bundle", contract::json_text(setup.way.ca_bundle, 4096)},
                               {"extra_ca_bundle", contract::json_text(setup.way.extra_ca_bundle, 4096)},
                               {"proxy", contract::json_text(setup.way.proxy, 512)}}) +
      "\n";
  if (text.size() + setup.value.view().size() > kMaxBrokerSetup) {
    return make_error(Code::config, "the vendor's credential or its command is too large");
  }
  text.reserve(text.size() + setup.value.view().size());
  text += setup.value.view();
  Secret out(text);
  wipe_string(&text);
  return out;
}

Result<BrokerSetup> decode_broker_setup(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return make_error(Code::protocol, "the broker's setup is incomplete");
  TRY(Json json, contract::parse_json(bytes.substr(0, end), kMaxBrokerSetup));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  BrokerSetup setup;
  setup.source = static_cast<CredentialSource>(in.choice("source", source_names()));
  setup.shape = static_cast<LoginShape>(in.choice("shape", {"claude", "codex"}));
  setup.bearer = in.boolean("bearer");
  setup.basic = in.boolean("basic");
  setup.file = in.text("file", {0, 4096});
  setup.command = in.texts("command", 0, 64, {0, 4096});
  setup.keyring = in.text("keyring", {0, 1024});
  setup.token_url = in.text("token_url", {1, 512});
  setup.way.ca_bundle = in.text("ca_bundle", {0, 4096});
  setup.way.extra_ca_bundle = in.text("extra_ca_bundle", {0, 4096});
  setup.way.proxy = in.text("proxy", {0, 512});
  in.finish();
  if (fault.failed()) return fault.error().with("the broker's setup");
  setup.value = Secret(bytes.substr(end + 1));
  return setup;
}

}  // namespace cofferdam::egress
