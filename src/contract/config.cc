#include "contract/config.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include <utility>

#include "base/text.h"
#include "contract/json.h"
#include "contract/network.h"
#include "contract/rules.h"

namespace cofferdam::contract {
namespace {

constexpr std::size_t kMaxNames = 64;
constexpr std::uint64_t kMaxAttempts = 100'000;
constexpr std::uint64_t kMaxCapacityBytes = 1ULL << 60U;
constexpr std::size_t kMaxConfigBytes = 1U << 20U;
constexpr std::uint64_t kMaxVendorWaitMs = 24ULL * 3600U * 1000U;
constexpr std::uint64_t kMaxAnswerBytes = 16ULL << 30U;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

constexpr const char* kDestinationName = "must be 1 to 64 of A-Z, a-z, 0-9 and . _ -";

bool is_range(std::string_view text) {
  return parse_range(text).has_value();
}

bool is_keyring_description(std::string_view text) {
  return !text.empty() && text.size() <= 1024 && !has_control(text);
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && !only_of(text.substr(0, 1), kDigits) &&
         only_of(text, std::string(kLetters) + std::string(kDigits) + "_");
}

bool is_path_or_empty(std::string_view text) {
  return text.empty() || (text.front() == '/' && text.size() <= kMaxPathBytes && !has_control(text));
}

bool is_image_or_host(std::string_view text) {
  return text == "host" || (starts_with(text, "sha256:") && is_sha256(text.substr(7)));
}

// Reads the document table by table. The first error wins, and names file, line and key.
class TomlReader {
 public:
  explicit TomlReader(std::string shown_path) : shown_path_(std::move(shown_path)) {}

  // One table: what to do with each key. A handler gets the value and the full name of the key.
  using Handler = std::function<void(const toml::node&, const std::string&)>;
  struct Entry {
    const char* key;
    Handler read;
  };
  void table(const toml::node& node, const std::string& name, const std::vector<Entry>& entries) {
    const toml::table* values = node.as_table();
    if (values == nullptr) return fail(node, name, "must be a table");
    for (const auto& [key, value] : *values) {
      const std::string full =
          name.empty() ? printable(key.str(), 64) : name + "." + printable(key.str(), 64);
      const Entry* known = nullptr;
      for (const Entry& entry : entries) known = entry.key == key.str() ? &entry : known;
      if (known == nullptr) {
        fail_at(key.source().begin.line, full, "unknown key");
      } else {
        known->read(value, full);
      }
    }
  }

  using Check = bool (*)(std::string_view);
  Handler text(std::string* out, Check valid, const char* problem) {
    return [this, out, valid, problem](const toml::node& node, const std::string& name) {
      const auto* value = node.as_string();
      if (value == nullptr) return fail(node, name, "must be a string");
      if (!valid(value->get())) return fail(node, name, problem);
      *out = value->get();
    };
  }
  Handler integer(std::uint64_t min, std::uint64_t max, std::function<void(std::uint64_t)> set) {
    return [this, min, max, set = std::move(set)](const toml::node& node, const std::string& name) {
      const auto* value = node.as_integer();
      if (value == nullptr) return fail(node, name, "must be an integer");
      const std::int64_t number = value->get();
      const bool in_range = number >= 0 && static_cast<std::uint64_t>(number) >= min &&
                            static_cast<std::uint64_t>(number) <= max;
      if (!in_range) return fail(node, name, fmt::format("must be an integer from {} to {}", min, max));
      set(static_cast<std::uint64_t>(number));
    };
  }
  Handler duration(std::uint64_t min_ms, std::uint64_t max_ms, std::chrono::milliseconds* out) {
    return [this, min_ms, max_ms, out](const toml::node& node, const std::string& name) {
      const auto* value = node.as_string();
      if (value == nullptr) return fail(node, name, "must be a duration in quotes, such as \"30m\"");
      auto parsed = parse_duration(value->get());
      if (!parsed) return fail(node, name, parsed.error().line());
      const auto ms = static_cast<std::uint64_t>(parsed->count());
      if (ms < min_ms || ms > max_ms) {
        return fail(node, name, fmt::format("must be from {} ms to {} ms", min_ms, max_ms));
      }
      *out = *parsed;
    };
  }
  // "0s" means that there is none.
  Handler maybe_duration(std::uint64_t max_ms, std::optional<std::chrono::milliseconds>* out) {
    return [this, max_ms, out](const toml::node& node, const std::string& name) {
      std::chrono::milliseconds value{-1};
      duration(0, max_ms, &value)(node, name);
      if (value.count() > 0) *out = value;
      if (value.count() == 0) out->reset();
    };
  }
  Handler names(std::vector<std::string>* out, Check valid, const char* problem) {
    return [this, out, valid, problem](const toml::node& node, const std::string& name) {
      const toml::array* values = node.as_array();
      if (values == nullptr) return fail(node, name, "must be an array");
      if (values->size() > kMaxNames) return fail(node, name, fmt::format("has more than {}", kMaxNames));
      out->clear();
      for (const toml::node& value : *values) {
        const auto* text = value.as_string();
        if (text == nullptr || !valid(text->get())) return fail(value, name, problem);
        out->push_back(text->get());
      }
    };
  }
  Handler nested(std::vector<Entry> entries) {
    return [this, entries = std::move(entries)](const toml::node& node, const std::string& name) {
      table(node, name, entries);
    };
  }

  Handler boolean(bool* out) {
    return [this, out](const toml::node& node, const std::string& name) {
      const auto* value = node.as_boolean();
      if (value == nullptr) return fail(node, name, "must be true or false");
      *out = value->get();
    };
  }
  // One of `names`; `set` gets its index.
  Handler choice(std::vector<std::string> names, std::function<void(std::size_t)> set) {
    return [this, names = std::move(names), set = std::move(set)](const toml::node& node,
                                                                  const std::string& name) {
      const auto* value = node.as_string();
      for (std::size_t i = 0; value != nullptr && i < names.size(); ++i) {
        if (names[i] == value->get()) return set(i);
      }
      fail(node, name, "must be one of " + join(names, ", "));
    };
  }
  // Dollars, as 2 or 2.50, into millionths.
  Handler price(std::uint64_t* out) {
    return [this, out](const toml::node& node, const std::string& name) {
      const std::optional<double> dollars = node.value<double>();
      if (!node.is_number() || !dollars.has_value() || !(*dollars >= 0 && *dollars * 1e6 <= kMaxPrice)) {
        return fail(node, name, "must be a number of dollars per million tokens, at most 10000");
      }
      *out = static_cast<std::uint64_t>(std::llround(*dollars * 1e6));
    };
  }
  Handler prices(std::map<std::string, ModelPrice>* out) {
    return [this, out](const toml::node& node, const std::string& name) {
      const toml::table* models = node.as_table();
      if (models == nullptr) return fail(node, name, "must be a table");
      for (const auto& [key, value] : *models) {
        const std::string full = name + "." + printable(key.str(), 64);
        if (!is_model(key.str())) return fail(value, full, "must be a model's name");
        ModelPrice& one = (*out)[std::string(key.str())];
        table(value, full,
              {{"input", price(&one.input)},
               {"output", price(&one.output)},
               {"cache_read", price(&one.cache_read)},
               {"cache_write", price(&one.cache_write)},
               {"cache_write_1h", price(&one.cache_write_1h)}});
        // What the cache costs is not said: never less than without it.
        if (one.cache_read == 0) one.cache_read = one.input;
        if (one.cache_write == 0) one.cache_write = one.input;
        if (one.cache_write_1h == 0) one.cache_write_1h = one.cache_write;
      }
    };
  }
  // An array of tables; `each` gets one of them and its name.
  Handler tables(std::size_t max, std::function<void(const toml::node&, const std::string&)> each) {
    return [this, max, each = std::move(each)](const toml::node& node, const std::string& name) {
      const toml::array* values = node.as_array();
      if (values == nullptr) return fail(node, name, "must be an array of tables");
      if (values->size() > max) return fail(node, name, fmt::format("has more than {}", max));
      for (std::size_t i = 0; i < values->size(); ++i) each(*values->get(i), json_path(name, i));
    };
  }
  // What a [[destinations]] entry says of its credential; `credential` itself makes it have one.
  struct CredentialKeys {
    std::optional<CredentialSource> source;
    DestinationCredential rest;
    bool any = false;
  };
  std::vector<Entry> credential_entries(CredentialKeys* out) {
    const auto set_source = [out](std::size_t i) {
      constexpr CredentialSource kSources[] = {CredentialSource::env, CredentialSource::command,
                                               CredentialSource::keyring};
      out->source = kSources[i];
    };
    const auto set_scheme = [out](std::size_t i) { out->rest.basic = i == 1; };
    std::vector<Entry> entries{
        {"credential_env", text(&out->rest.env, is_variable_name, "must be the name of a variable")},
        {"credential_command", argv(&out->rest.command)},
        {"keyring", text(&out->rest.keyring, is_keyring_description, "must be the description of a key")},
        {"credential_scheme", choice({"bearer", "basic"}, set_scheme)},
        {"ca_bundle", text(&out->rest.ca_bundle, is_path_or_empty, "must be an absolute path")},
    };
    for (Entry& entry : entries) {
      entry.read = [out, read = std::move(entry.read)](const toml::node& node, const std::string& name) {
        out->any = true;
        read(node, name);
      };
    }
    entries.push_back({"credential", choice({"env", "command", "keyring"}, set_source)});
    return entries;
  }
  void take_credential(const toml::node& node, const std::string& name, const CredentialKeys& keys,
                       NamedDestination* out) {
    if (!keys.source.has_value()) {
      if (keys.any) fail(node, name + ".credential", "must be set where the keys of a credential are");
      return;
    }
    const char* missing = nullptr;
    if (*keys.source == CredentialSource::env && keys.rest.env.empty()) missing = ".credential_env";
    if (*keys.source == CredentialSource::command && keys.rest.command.empty())
      missing = ".credential_command";
    if (*keys.source == CredentialSource::keyring && keys.rest.keyring.empty()) missing = ".keyring";
    if (missing != nullptr) return fail(node, name + missing, "must be set for this \"credential\"");
    out->credential = keys.rest;
    out->credential->source = *keys.source;
    out->destination.credential = out->name;
  }
  Handler destinations(std::vector<NamedDestination>* out) {
    return tables(kMaxDestinations, [this, out](const toml::node& node, const std::string& name) {
      NamedDestination one;
      CredentialKeys credential;
      Destination& what = one.destination;
      const auto set_port = [&what](std::uint64_t n) { what.port = static_cast<std::uint16_t>(n); };
      const auto set_sent = [&what](std::uint64_t n) { what.max_sent = n; };
      const auto set_received = [&what](std::uint64_t n) { what.max_received = n; };
      std::vector<Entry> entries{
          {"name", text(&one.name, is_destination_name, kDestinationName)},
          {"host", text(&what.host, is_host_name, "must be a host name in lower case, no address")},
          {"port", integer(1, 65'535, set_port)},
          {"plain", boolean(&what.plain)},
          {"addresses", names(&what.addresses, is_range, "must be ranges such as 10.0.0.0/8")},
          {"max_sent", integer(1, kMaxDestinationBytes, set_sent)},
          {"max_received", integer(1, kMaxDestinationBytes, set_received)}};
      for (Entry& entry : credential_entries(&credential)) entries.push_back(std::move(entry));
      table(node, name, entries);
      if (one.name.empty()) return fail(node, name + ".name", kDestinationName);
      take_credential(node, name, credential, &one);
      if (auto found = find_problem(what)) return fail(node, name + "." + found->key, found->problem);
      for (const NamedDestination& other : *out) {
        if (other.name == one.name) return fail(node, name + ".name", "is the name of an earlier one");
        if (other.destination.is_at(what)) return fail(node, name, "has the host and port of an earlier one");
      }
      out->push_back(std::move(one));
    });
  }
  Handler repositories(std::map<std::string, std::vector<std::string>>* out) {
    return [this, out](const toml::node& node, const std::string& name) {
      const toml::table* sections = node.as_table();
      if (sections == nullptr) return fail(node, name, "must be a table");
      for (const auto& [key, value] : *sections) {
        const std::string full = name + "." + printable(key.str(), 200);
        if (key.str().empty() || !is_path_or_empty(key.str())) {
          return fail(value, full, "must be the absolute path of a repository");
        }
        table(value, full,
              {{"destinations", names(&(*out)[std::string(key.str())], is_destination_name,
                                      "must be names of [[destinations]]")}});
      }
    };
  }
  // A program with its arguments: no shell, so the program is a path.
  Handler argv(std::vector<std::string>* out) {
    return [this, out](const toml::node& node, const std::string& name) {
      const auto* values = node.as_array();
      bool good = values != nullptr && !values->empty() && values->size() <= 64;
      for (std::size_t i = 0; good && i < values->size(); ++i) {
        const auto* text = values->get(i)->as_string();
        good = text != nullptr && text->get().size() <= kMaxPathBytes &&
               text->get().find('\0') == std::string::npos;
        if (good) out->push_back(text->get());
      }
      if (!good || !starts_with(out->front(), "/")) {
        fail(node, name, "must be an array of strings that begins with the absolute path of a program");
      }
    };
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void fail(const toml::node& node, const std::string& name, const std::string& problem) {
    fail_at(node.source().begin.line, name, problem);
  }
  void fail_at(std::size_t line, const std::string& name, const std::string& problem) {
    if (error_.has_value()) return;
    error_ = make_error(Code::config, fmt::format("{}:{}: {}: {}", shown_path_, line, name, problem));
  }

  std::string shown_path_;
  std::optional<Error> error_;
};

bool is_host(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  if (text.front() == '[') {  // an IPv6 address; what exactly it may be, the resolver says
    return text.size() > 4 && text.back() == ']' &&
           only_of(text.substr(1, text.size() - 2), "0123456789abcdefABCDEF:.");
  }
  if (text.front() == '-' || text.front() == '.' || text.find("..") != std::string_view::npos) return false;
  return only_of(text, std::string(kLetters) + std::string(kDigits) + ".-");
}

// "https://host[:port][/prefix]" and nothing behind it: user and query would be sent or dropped unseen.
bool is_upstream(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  if (!starts_with(text, kScheme)) return false;
  text.remove_prefix(kScheme.size());
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    if (!is_url_prefix(text.substr(slash))) return false;
    text = text.substr(0, slash);
  }
  const std::size_t bracket = text.find(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return is_host(text);
  return is_host(text.substr(0, colon)) && parse_port(text.substr(colon + 1)).has_value();
}

// "http://host:port" of a proxy that is asked to CONNECT; a password would stand in the file, so there is
// none.
bool is_proxy_or_empty(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (text.empty()) return true;
  if (!starts_with(text, kScheme)) return false;
  text.remove_prefix(kScheme.size());
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && is_host(text.substr(0, colon)) &&
         parse_port(text.substr(colon + 1)).has_value();
}

// As an upstream, with a path of unreserved characters (RFC 3986) and no query.
bool is_token_url(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  if (!starts_with(text, kScheme) || text.size() > 512) return false;
  const std::size_t slash = text.find('/', kScheme.size());
  if (slash == std::string_view::npos || !is_upstream(text.substr(0, slash))) return false;
  return only_of(text.substr(slash), std::string(kLetters) + std::string(kDigits) + "/-._~");
}

// git's ident line ends a name at '<' and an email at '>', and drops or chokes on the rest:
// git-commit-tree(1).
bool is_author_name(std::string_view text) {
  return !trim(text).empty() && text.size() <= 256 && !has_control(text) &&
         text.find_first_of("<>") == std::string_view::npos;
}

bool is_author_email(std::string_view text) {
  return is_author_name(text) && text.find(' ') == std::string_view::npos;
}

// The rules of git-check-ref-format(1), and no component that could be taken for an option.
bool is_branch_prefix(std::string_view text) {
  if (text.empty() || text.size() > 128 || has_control(text) || text.back() == '/') return false;
  if (text.find_first_of(" ~^:?*[\\") != std::string_view::npos) return false;
  if (text.find("..") != std::string_view::npos || text.find("@{") != std::string_view::npos) return false;
  for (const std::string& part : split(text, '/')) {
    if (part.empty() || part == "@" || part.front() == '.' || part.front() == '-' || part.back() == '.')
      return false;
    if (part.size() >= 5 && part.substr(part.size() - 5) == ".lock") return false;
  }
  return true;
}

bool is_tool_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         only_of(text, "abcdefghijklmnopqrstuvwxyz_" + std::string(kDigits));
}

std::vector<TomlReader::Entry> vendor_entries(TomlReader* in, VendorConfig* out) {
  const auto set_source = [out](std::size_t i) { out->credential = static_cast<CredentialSource>(i); };
  return {
      {"upstream",
       in->text(&out->upstream, is_upstream, "must be https://host[:port], with or without a path")},
      {"ca_bundle", in->text(&out->ca_bundle, is_path_or_empty, "must be an absolute path")},
      {"extra_ca_bundle", in->text(&out->extra_ca_bundle, is_path_or_empty, "must be an absolute path")},
      {"proxy", in->text(&out->proxy, is_proxy_or_empty, "must be http://host:port")},
      {"credential", in->choice({"env", "file", "command", "keyring"}, set_source)},
      {"credential_env", in->text(&out->credential_env, is_variable_name, "must be the name of a variable")},
      {"credential_file", in->text(&out->credential_file, is_path_or_empty, "must be an absolute path")},
      {"credential_command", in->argv(&out->credential_command)},
      {"credential_bearer", in->boolean(&out->bearer)},
      {"keyring", in->text(&out->keyring, is_keyring_description, "must be the description of a key")},
      {"token_url", in->text(&out->token_url, is_token_url, "must be https://host[:port]/path")},
      {"vendor_tools", in->names(&out->vendor_tools, is_tool_name, "must be names of the vendor's tools")},
      {"head_timeout", in->duration(1, kMaxVendorWaitMs, &out->head_timeout)},
      {"idle_timeout", in->duration(1, kMaxVendorWaitMs, &out->idle_timeout)},
      {"answer_bytes",
       in->integer(1, kMaxAnswerBytes, [out](std::uint64_t bytes) { out->answer_bytes = bytes; })},
  };
}

// What only the document as a whole can show: a source that is chosen must be named.
Status check_vendor(const VendorConfig& vendor, const std::string& name, const std::string& shown_path) {
  const char* missing = nullptr;
  if (vendor.credential == CredentialSource::command && vendor.credential_command.empty())
    missing = "credential_command";
  if (vendor.credential == CredentialSource::keyring && vendor.keyring.empty()) missing = "keyring";
  if (missing == nullptr) return {};
  return make_error(Code::config, fmt::format("{}: vendors.{}.{}: must be set for this \"credential\"",
                                              shown_path, name, missing));
}

bool is_free_rule(std::string_view text) {
  const FindingRule* rule = find_rule(text);
  return rule != nullptr && rule->free;
}

// Both lists of one section; a rule that is in both is refused.
std::vector<TomlReader::Entry> handoff_entries(TomlReader* in, FindingChoices* out) {
  const auto take = [in, out](FindingAction action) {
    return [in, out, action](const toml::node& node, const std::string& name) {
      std::vector<std::string> rules;
      in->names(&rules, is_free_rule, "must be names of findings that can be chosen: docs/handoff.md")(node,
                                                                                                       name);
      for (const std::string& rule : rules) {
        FindingAction& chosen = (*out)[rule];
        if (chosen != FindingAction::refused) chosen = action;
      }
    };
  };
  return {{"refuse", take(FindingAction::refused)}, {"report", take(FindingAction::reported)}};
}

std::vector<TomlReader::Entry> control_entries(TomlReader* in, ControlChoices* out) {
  std::vector<TomlReader::Entry> entries;
  for (const Control& control : control_table()) {
    entries.push_back({control.name, in->choice({need_name(Need::required), need_name(Need::best_effort)},
                                                [out, name = control.name](std::size_t chosen) {
                                                  (*out)[name] = static_cast<Need>(chosen);
                                                })});
  }
  return entries;
}

// A name that nothing has would open nothing, and nobody would know why.
Status check_repositories(const Config& config, const std::string& shown_path) {
  for (const auto& [path, names] : config.repositories) {
    for (const std::string& name : names) {
      const bool known = std::any_of(config.destinations.begin(), config.destinations.end(),
                                     [&](const NamedDestination& one) { return one.name == name; });
      if (known) continue;
      return make_error(Code::config, fmt::format("{}: repositories.{}.destinations: there is no \"{}\" in "
                                                  "[[destinations]]",
                                                  shown_path, printable(path, 200), printable(name, 64)));
    }
  }
  return {};
}

std::vector<TomlReader::Entry> deadline_entries(TomlReader* in, Deadlines* out) {
  return {
      {"total", in->duration(1, kMaxTotalMs, &out->total)},
      {"grace", in->duration(0, kMaxGraceMs, &out->grace)},
      {"first_output", in->maybe_duration(kMaxTotalMs, &out->first_output)},
      {"idle", in->maybe_duration(kMaxTotalMs, &out->idle)},
  };
}

void read_document(const toml::table& document, TomlReader* in, Config* out) {
  using Entry = TomlReader::Entry;
  std::vector<Entry> limits;
  for (const LimitRule& rule : kLimitRules) {
    std::uint64_t* target = &(out->limits.*rule.field);
    limits.push_back({rule.key, in->integer(rule.min, rule.max, [target](std::uint64_t n) { *target = n; })});
  }
  const std::vector<Entry> commit{
      {"author_name",
       in->text(&out->author_name, is_author_name, "must be a name on one line without < and >")},
      {"author_email", in->text(&out->author_email, is_author_email, "must be an address without < and >")},
      {"steps", in->boolean(&out->steps)},
      {"sign_key", in->text(&out->sign_key, is_path_or_empty, "must be an absolute path")},
  };
  const auto set_uid = [out](std::uint64_t n) { out->box_uid = static_cast<std::uint32_t>(n); };
  in->table(
      document, "",
      {
          {"vendors", in->nested({{"anthropic", in->nested(vendor_entries(in, &out->anthropic))},
                                  {"openai", in->nested(vendor_entries(in, &out->openai))}})},
          {"commit", in->nested(commit)},
          {"branch", in->nested({{"prefix", in->text(&out->branch_prefix, is_branch_prefix,
                                                     "must be a part of a branch name")}})},
          {"agents",
           in->nested(
               {{"dir", in->text(&out->agents_dir, is_path_or_empty, "must be an absolute path")},
                {"claude",
                 in->nested({{"model", in->text(&out->claude_model, is_model, "must be a model's name")}})},
                {"codex",
                 in->nested({{"model", in->text(&out->codex_model, is_model, "must be a model's name")}})}})},
          {"prices", in->prices(&out->prices)},
          {"destinations", in->destinations(&out->destinations)},
          {"repositories", in->repositories(&out->repositories)},
          {"box", in->nested({{"uid", in->integer(1, (1ULL << 31U) - 1, set_uid)},
                              {"image", in->text(&out->box_image, is_image_or_host,
                                                 "must be \"host\" or sha256: and 64 digits")},
                              {"cgroup",
                               in->text(&out->cgroup, is_attempt_id, "must be 1 to 64 of a-z, 0-9 and -")}})},
          {"debug", in->nested({{"capture_bodies", in->boolean(&out->capture_bodies)}})},
          {"capacity",
           in->nested(
               {{"attempts",
                 in->integer(0, kMaxAttempts, [out](std::uint64_t n) { out->capacity_attempts = n; })},
                {"memory_bytes", in->integer(0, kMaxCapacityBytes,
                                             [out](std::uint64_t n) { out->capacity_memory_bytes = n; })}})},
          {"cache",
           in->nested({{"max_bytes", in->integer(0, kMaxCapacityBytes,
                                                 [out](std::uint64_t n) { out->cache_max_bytes = n; })}})},
          {"handoff", in->nested(handoff_entries(in, &out->findings))},
          {"controls", in->nested(control_entries(in, &out->controls))},
          {"recovery",
           in->nested({{"keep_storage", in->duration(0, kMaxTotalMs, &out->keep_storage)},
                       {"checkpoint_every", in->duration(0, kMaxTotalMs, &out->checkpoint_every)}})},
          {"workspace",
           in->nested({{"storage", in->choice({"auto", "memory", "image", "slot"},
                                              [out](std::size_t i) {
                                                out->work_storage = static_cast<WorkStorage>(i);
                                              })},
                       {"slots_dir", in->text(&out->slots_dir, is_path_or_empty, "must be an absolute path")},
                       {"tree", in->choice({"overlay", "checkout"},
                                           [out](std::size_t i) { out->work_overlay = i == 0; })}})},
          {"deadlines", in->nested(deadline_entries(in, &out->deadlines))},
          {"limits", in->nested(limits)},
      });
}

Result<toml::table> parse_toml(std::string_view text, const std::string& shown_path) {
  if (text.size() > kMaxConfigBytes) {
    return make_error(Code::config, fmt::format("{}: larger than {} bytes", shown_path, kMaxConfigBytes));
  }
  if (!is_valid_utf8(text)) return make_error(Code::config, shown_path + ": not UTF-8");
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& problem) {
    return make_error(Code::config,
                      fmt::format("{}:{}: not TOML: {}", shown_path, problem.source().begin.line,
                                  printable(problem.description(), 512)));
  }
}

}  // namespace

Result<Config> decode_config(std::string_view toml, const std::string& shown_path) {
  TRY(toml::table document, parse_toml(toml, shown_path));
  Config out;
  TomlReader in(shown_path);
  read_document(document, &in, &out);
  if (in.error().has_value()) return *in.error();
  TRY_VOID(check_vendor(out.anthropic, "anthropic", shown_path));
  TRY_VOID(check_vendor(out.openai, "openai", shown_path));
  TRY_VOID(check_repositories(out, shown_path));
  return out;
}

}  // namespace cofferdam::contract
