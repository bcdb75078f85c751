#include "egress/headers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Vendor;

// By vendor; everything else that the box sends stays here. Recorded from Claude Code 2.1.197 and Codex CLI
// 0.171.0; x-codex-turn-state is the vendor's own, sent back.
struct RequestField {
  Vendor vendor;
  std::string_view name;
};
constexpr RequestField kRequestFields[] = {
    {Vendor::anthropic, "accept"},
    {Vendor::anthropic, "user-agent"},
    {Vendor::anthropic, "anthropic-version"},
    {Vendor::anthropic, "anthropic-dangerous-direct-browser-access"},
    {Vendor::anthropic, "x-app"},
    {Vendor::anthropic, "x-claude-code-session-id"},
    {Vendor::anthropic, "x-claude-code-agent-id"},
    {Vendor::anthropic, "x-stainless-arch"},
    {Vendor::anthropic, "x-stainless-lang"},
    {Vendor::anthropic, "x-stainless-os"},
    {Vendor::anthropic, "x-stainless-package-version"},
    {Vendor::anthropic, "x-stainless-retry-count"},
    {Vendor::anthropic, "x-stainless-runtime"},
    {Vendor::anthropic, "x-stainless-runtime-version"},
    {Vendor::anthropic, "x-stainless-timeout"},
    {Vendor::openai, "accept"},
    {Vendor::openai, "user-agent"},
    {Vendor::openai, "originator"},
    {Vendor::openai, "session-id"},
    {Vendor::openai, "thread-id"},
    {Vendor::openai, "x-client-request-id"},
    {Vendor::openai, "x-codex-turn-metadata"},
    {Vendor::openai, "x-codex-turn-state"},
    {Vendor::openai, "x-codex-window-id"},
    {Vendor::openai, "x-codex-parent-thread-id"},
    {Vendor::openai, "x-openai-subagent"},
    {Vendor::openai, "x-openai-internal-codex-responses-lite"},
};

// Flags switch parts of an API on, so every one of them is named. `tool`: only for those who have opted in.
struct Flag {
  Vendor vendor;
  std::string_view field;
  std::string_view flag;
  std::string_view tool;
};
constexpr std::string_view kBeta = "anthropic-beta";
constexpr std::string_view kFeatures = "x-codex-beta-features";
constexpr std::string_view kOauthFlag = "oauth-2025-04-20";
constexpr std::string_view kLongContext = "context-1m-2025-08-07";
constexpr Flag kFlags[] = {
    {Vendor::anthropic, kBeta, "claude-code-20250219", ""},
    {Vendor::anthropic, kBeta, kOauthFlag, ""},
    {Vendor::anthropic, kBeta, kLongContext, ""},
    {Vendor::anthropic, kBeta, "interleaved-thinking-2025-05-14", ""},
    {Vendor::anthropic, kBeta, "thinking-token-count-2026-05-13", ""},
    {Vendor::anthropic, kBeta, "context-management-2025-06-27", ""},
    {Vendor::anthropic, kBeta, "prompt-caching-scope-2026-01-05", ""},
    {Vendor::anthropic, kBeta, "mid-conversation-system-2026-04-07", ""},
    {Vendor::anthropic, kBeta, "effort-2025-11-24", ""},
    {Vendor::anthropic, kBeta, "extended-cache-ttl-2025-04-11", ""},
    {Vendor::anthropic, kBeta, "advanced-tool-use-2025-11-20", ""},
    {Vendor::anthropic, kBeta, "web-fetch-2025-09-10", "web_fetch_20250910"},
    {Vendor::openai, kFeatures, "remote_compaction_v2", ""},
};

struct FixedField {
  Vendor vendor;
  std::string_view name;
  std::string_view value;
};
constexpr FixedField kFixedFields[] = {{Vendor::anthropic, "anthropic-version", "2023-06-01"}};

constexpr std::array<std::string_view, 7> kResponseFields = {
    "content-type",         "retry-after",  "request-id",        "x-request-id",
    "openai-processing-ms", "openai-model", "x-codex-turn-state"};
constexpr std::array<std::string_view, 3> kResponsePrefixes = {"anthropic-ratelimit-", "x-ratelimit-",
                                                               "x-codex-primary-"};

template <std::size_t N>
bool listed(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_flag_field(Vendor vendor, std::string_view name) {
  return std::any_of(std::begin(kFlags), std::end(kFlags),
                     [&](const Flag& flag) { return flag.vendor == vendor && flag.field == name; });
}

std::vector<std::string> flags_in(std::string_view value) {
  std::vector<std::string> out;
  for (const std::string& part : split(value, ',')) {
    std::string flag(trim(part));
    if (!flag.empty()) out.push_back(std::move(flag));
  }
  return out;
}

bool names_long_context(const GatewayPolicy& policy) {
  return std::any_of(policy.models.begin(), policy.models.end(), [](const std::string& model) {
    return model.size() > 4 && model.compare(model.size() - 4, 4, "[1m]") == 0;
  });
}

bool flag_allowed(const GatewayPolicy& policy, std::string_view field, std::string_view wanted) {
  return std::any_of(std::begin(kFlags), std::end(kFlags), [&](const Flag& flag) {
    if (flag.vendor != policy.vendor || flag.field != field || flag.flag != wanted) return false;
    // Long context can have another price: only for those who have named such a model.
    if (flag.flag == kLongContext) return names_long_context(policy);
    const auto& tools = policy.vendor_tools;
    return flag.tool.empty() || std::find(tools.begin(), tools.end(), flag.tool) != tools.end();
  });
}

// In one field and once each, with the one that belongs to the credential.
std::string joined_flags(const GatewayPolicy& policy, const RequestHead& head, std::string_view field) {
  const bool oauth = policy.credential_kind == CredentialKind::anthropic_oauth;
  std::vector<std::string> out;
  for (const HeaderField& one : head.fields) {
    if (one.name != field) continue;
    for (const std::string& flag : flags_in(one.value)) {
      const bool wanted = flag != kOauthFlag || oauth;
      if (wanted && std::find(out.begin(), out.end(), flag) == out.end()) out.push_back(flag);
    }
  }
  const bool missing = std::find(out.begin(), out.end(), kOauthFlag) == out.end();
  if (field == kBeta && oauth && missing) out.emplace_back(kOauthFlag);
  return join(out, ",");
}

}  // namespace

std::optional<Decision> decide_fields(const GatewayPolicy& policy, const RequestHead& head) {
  for (const HeaderField& field : head.fields) {
    for (const FixedField& fixed : kFixedFields) {
      const bool meant = fixed.vendor == policy.vendor && fixed.name == field.name;
      if (meant && fixed.value != field.value) return deny("header", field.name);
    }
    if (!is_flag_field(policy.vendor, field.name)) continue;
    for (const std::string& flag : flags_in(field.value)) {
      if (!flag_allowed(policy, field.name, flag)) {
        return deny("flag", field.name + ": " + printable(flag, 64));
      }
    }
  }
  return std::nullopt;
}

std::vector<HeaderField> vendor_fields(const GatewayPolicy& policy, const RequestHead& head) {
  std::vector<HeaderField> out;
  for (const HeaderField& field : head.fields) {
    bool passes =
        std::any_of(std::begin(kRequestFields), std::end(kRequestFields), [&](const RequestField& allowed) {
          return allowed.vendor == policy.vendor && allowed.name == field.name;
        });
    if (passes) out.push_back(field);
  }
  for (std::string_view field : {kBeta, kFeatures}) {
    if (!is_flag_field(policy.vendor, field)) continue;
    std::string flags = joined_flags(policy, head, field);
    if (!flags.empty()) out.push_back({std::string(field), std::move(flags)});
  }
  return out;
}

Secret vendor_request_head(const Origin& origin, std::string_view target,
                           const std::vector<HeaderField>& fields, const VendorCredential& credential,
                           std::size_t body_bytes) {
  std::string text =
      "POST " + origin.prefix + std::string(target) + " HTTP/1.1\r\nhost: " + origin.authority() + "\r\n";
  for (const HeaderField& field : fields) text += field.name + ": " + field.value + "\r\n";
  text += "content-type: application/json\r\naccept-encoding: identity\r\ncontent-length: " +
          std::to_string(body_bytes) + "\r\n";
  // Reserved before the credential goes in: growth would leave a copy behind.
  text.reserve(text.size() + header_bytes(credential) + 2);
  append_credential(credential, &text);
  text.append("\r\n");
  Secret out(text);
  wipe_string(&text);
  return out;
}

bool response_field_allowed(std::string_view name) {
  return listed(kResponseFields, name) ||
         std::any_of(kResponsePrefixes.begin(), kResponsePrefixes.end(),
                     [&](std::string_view prefix) { return starts_with(name, prefix); });
}

bool is_plain_value(std::string_view value) {
  return value.size() <= 4096 &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace cofferdam::egress
