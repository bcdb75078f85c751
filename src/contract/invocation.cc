#include "contract/invocation.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/text.h"
#include "contract/invocation_json.h"
#include "contract/json.h"
#include "contract/rules.h"

namespace cofferdam::contract {
namespace {

constexpr std::string_view kLowerAlnum = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kLowerAlnumDash = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view kContextName =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";
constexpr std::string_view kModel = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/[]-";
constexpr std::string_view kVersion = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
constexpr const char* kSha256Problem = "must be 64 lower-case hexadecimal digits";
constexpr std::size_t kMaxCommands = 64;
// Linux takes at most 2 MiB of arguments and environment together under the usual stack limit: execve(2).
constexpr std::size_t kMaxArgvBytes = 1U << 20U;

// Each check names the JSON path of what it looked at; the first failure stays in the fault.
class Rules {
 public:
  explicit Rules(const InvocationFields& fields) : fields_(fields) {}

  Status check() {
    attempt();
    agent();
    clone();
    prompt();
    context();
    answer_schema();
    commands();
    deadlines();
    limits();
    model();
    destinations();
    image();
    if (fault_.failed()) return fault_.error();
    return {};
  }

 private:
  void require(bool holds, const std::string& path, const std::string& problem) {
    if (!holds) fault_.fail(path, problem, Code::usage);
  }
  // Whatever is kept as a string in JSON.
  void require_text(const std::string& text, const std::string& path) {
    require(is_valid_utf8(text), path, "must be UTF-8");
    require(text.find('\0') == std::string::npos, path, "must not contain NUL");
  }

  void attempt() {
    require(is_attempt_id(fields_.attempt_id), "$.attempt_id",
            "must be 1 to 64 of a-z, 0-9 and -, starting and ending with a letter or digit");
  }

  void argv(const std::vector<std::string>& argv, const std::string& path) {
    require(!argv.empty(), path, "must not be empty");
    require(argv.size() <= kMaxArgvEntries, path,
            fmt::format("must have at most {} entries", kMaxArgvEntries));
    std::size_t total = 0;
    for (std::size_t i = 0; i < argv.size() && !fault_.failed(); ++i) {
      require_text(argv[i], json_path(path, i));
      // The kernel's bound on one argument includes the terminating NUL.
      require(argv[i].size() < kMaxArgBytes, json_path(path, i),
              fmt::format("must have less than {} bytes", kMaxArgBytes));
      total += argv[i].size() + 1;
    }
    require(argv.empty() || !argv.front().empty(), json_path(path, 0U), "must not be empty");
    require(total <= kMaxArgvBytes, path, fmt::format("must have at most {} bytes together", kMaxArgvBytes));
  }

  void agent() {
    const AgentSpec& agent = fields_.agent;
    const Vendor vendor = agent_vendor(agent.name);
    require(agent.name == "command" || vendor != Vendor::none, "$.agent.name",
            "must be one of \"claude\", \"codex\", \"command\"");
    if (agent.name == "command") {
      argv(agent.argv, "$.agent.argv");
    } else {
      require(agent.argv.empty(), "$.agent.argv", "is only for the agent \"command\"");
    }
    if (agent.version.has_value()) {
      require(agent.name != "command", "$.agent.version", "means nothing for the agent \"command\"");
      require(is_version(*agent.version), "$.agent.version", "must be 1 to 64 of A-Z, a-z, 0-9 and . _ + -");
    }
    require(vendor == Vendor::none || fields_.egress == vendor, "$.egress",
            fmt::format("must be \"{}\" for the agent \"{}\"", vendor_name(vendor), agent.name));
  }

  void clone() {
    const CloneRequest& clone = fields_.clone;
    require_text(clone.repository, "$.clone.repository");
    require(starts_with(clone.repository, "/") && clone.repository.size() <= kMaxPathBytes,
            "$.clone.repository", fmt::format("must be an absolute path of at most {} bytes", kMaxPathBytes));
    require(is_object_id(clone.head), "$.clone.head",
            "must be a full object id: 40 or 64 lower-case hexadecimal digits");
    const auto same_format = [&](const std::string& id, const char* path) {
      require(is_object_id(id) && id.size() == clone.head.size(), path,
              "must be a full object id of the same format as the head");
    };
    if (clone.tree.has_value()) same_format(*clone.tree, "$.clone.tree");
    if (!clone.work_tree.has_value()) return;
    same_format(clone.work_tree->commit, "$.clone.work_tree.commit");
    same_format(clone.work_tree->tree, "$.clone.work_tree.tree");
  }

  void prompt() {
    require_text(fields_.prompt, "$.prompt");
    require(fields_.prompt.size() <= kMaxPromptBytes, "$.prompt",
            fmt::format("must have at most {} bytes", kMaxPromptBytes));
    require(!fields_.prompt.empty() || fields_.agent.name == "command", "$.prompt", "must not be empty");
  }

  void context() {
    if (!fields_.context.has_value()) return;
    const CapturedContext& context = *fields_.context;
    require(is_context_name(context.name), "$.context.name", "must be 1 to 128 of A-Z, a-z, 0-9 and . _ / -");
    require(context.version >= 1 && context.version <= kMaxJsonInteger, "$.context.version",
            fmt::format("must be an integer from 1 to {}", kMaxJsonInteger));
    require(is_sha256(context.sha256), "$.context.sha256", kSha256Problem);
    context_files(context.files);
  }

  void context_files(const std::vector<ContextFile>& files) {
    require(files.size() <= kMaxContextFiles, "$.context.files",
            fmt::format("must have at most {} entries", kMaxContextFiles));
    std::set<std::string> seen;
    for (std::size_t i = 0; i < files.size() && !fault_.failed(); ++i) {
      const std::string path = json_path("$.context.files", i);
      require_text(files[i].path, path + ".path");
      require(!files[i].path.empty() && files[i].path.size() <= kMaxPathBytes, path + ".path",
              fmt::format("must have 1 to {} bytes", kMaxPathBytes));
      require(seen.insert(files[i].path).second, path + ".path", "is the path of an earlier file too");
      require(is_sha256(files[i].sha256), path + ".sha256", kSha256Problem);
    }
  }

  void answer_schema() {
    if (!fields_.answer_schema.has_value()) return;
    require(fields_.agent.name != "command", "$.answer_schema", "means nothing for the agent \"command\"");
    require(fields_.answer_schema->size() <= kMaxAnswerSchemaBytes, "$.answer_schema",
            fmt::format("must have at most {} bytes in canonical form", kMaxAnswerSchemaBytes));
  }

  void image() {
    if (!fields_.image.has_value()) return;
    const std::string_view text = *fields_.image;
    require(starts_with(text, "sha256:") && is_sha256(text.substr(7)), "$.image",
            "must be \"sha256:\" and 64 lower-case hexadecimal digits");
  }

  void commands() {
    const auto& commands = fields_.commands;
    require(commands.empty() || !is_read_only(fields_.phase), "$.commands",
            "can only be granted in the phase \"implementation\"");
    require(commands.size() <= kMaxCommands, "$.commands",
            fmt::format("must have at most {} entries", kMaxCommands));
    std::set<std::string> seen;
    for (std::size_t i = 0; i < commands.size() && !fault_.failed(); ++i) {
      const std::string path = json_path("$.commands", i);
      const std::string& id = commands[i].id;
      require(!id.empty() && id.size() <= 64 && only_of(id, kLowerAlnumDash), path + ".id",
              "must be 1 to 64 of a-z, 0-9 and -");
      require(seen.insert(id).second, path + ".id", "is the id of an earlier command too");
      argv(commands[i].argv, path + ".argv");
    }
  }

  void deadlines() {
    const auto total = fields_.deadlines.total.count();
    const auto grace = fields_.deadlines.grace.count();
    require(total >= 1 && total <= static_cast<std::int64_t>(kMaxTotalMs), "$.deadlines.total_ms",
            fmt::format("must be an integer from 1 to {}", kMaxTotalMs));
    require(grace >= 0 && grace <= static_cast<std::int64_t>(kMaxGraceMs), "$.deadlines.grace_ms",
            fmt::format("must be an integer from 0 to {}", kMaxGraceMs));
    inner_deadline(fields_.deadlines.first_output, "$.deadlines.first_output_ms");
    inner_deadline(fields_.deadlines.idle, "$.deadlines.idle_ms");
  }

  void inner_deadline(const std::optional<std::chrono::milliseconds>& bound, const std::string& path) {
    if (!bound.has_value()) return;
    require(bound->count() >= 1 && bound->count() <= static_cast<std::int64_t>(kMaxTotalMs), path,
            fmt::format("must be an integer from 1 to {}", kMaxTotalMs));
  }

  void limits() {
    for (const LimitRule& rule : kLimitRules) {
      const std::uint64_t value = fields_.limits.*rule.field;
      require(value >= rule.min && value <= rule.max, json_path("$.limits", rule.key),
              fmt::format("must be an integer from {} to {}", rule.min, rule.max));
    }
  }

  void model() {
    const std::string& model = fields_.model;
    require(!model.empty() || fields_.agent.name == "command", "$.model", "must be named for this agent");
    require(model.empty() || fields_.egress != Vendor::none, "$.model", "means nothing without egress");
    require(model.empty() || is_model(model), "$.model",
            "must be 1 to 128 of A-Z, a-z, 0-9 and . _ : / [ ] -");
  }

  void destinations() {
    const auto& destinations = fields_.destinations;
    require(destinations.size() <= kMaxDestinations, "$.destinations",
            fmt::format("must have at most {} entries", kMaxDestinations));
    const auto credentials = std::count_if(destinations.begin(), destinations.end(),
                                           [](const Destination& one) { return !one.credential.empty(); });
    require(static_cast<std::size_t>(credentials) <= kMaxDestinationCredentials, "$.destinations",
            fmt::format("may name at most {} credentials", kMaxDestinationCredentials));
    std::set<std::pair<std::string, std::uint16_t>> seen;
    for (std::size_t i = 0; i < destinations.size() && !fault_.failed(); ++i) {
      const std::string path = json_path("$.destinations", i);
      const auto found = find_problem(destinations[i]);
      if (found.has_value()) fault_.fail(json_path(path, found->key), found->problem, Code::usage);
      require(seen.emplace(destinations[i].host, destinations[i].port).second, path,
              "has the host and port of an earlier one");
    }
  }

  const InvocationFields& fields_;
  JsonFault fault_;
};

}  // namespace

bool only_of(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_attempt_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && only_of(text, kLowerAlnumDash) &&
         only_of(text.substr(0, 1), kLowerAlnum) && only_of(text.substr(text.size() - 1), kLowerAlnum);
}

bool is_model(std::string_view text) {
  return !text.empty() && text.size() <= kMaxModelBytes && only_of(text, kModel);
}

bool is_context_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && only_of(text, kContextName);
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= 64 && only_of(text, kVersion);
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && only_of(text, "0123456789abcdef");
}

bool has_control(std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return true;
  }
  return false;
}

const char* backend_name(Backend backend) {
  return backend == Backend::docker ? "docker" : "native";
}

const char* shell_name(Shell shell) {
  return shell == Shell::none ? "none" : "sandboxed";
}

const char* history_name(History history) {
  return history == History::none ? "none" : "full";
}

const char* when_full_name(WhenFull when_full) {
  return when_full == WhenFull::refuse ? "refuse" : "queue";
}

const char* vendor_name(Vendor vendor) {
  if (vendor == Vendor::anthropic) return "anthropic";
  return vendor == Vendor::openai ? "openai" : "none";
}

Vendor agent_vendor(std::string_view agent) {
  if (agent == "claude") return Vendor::anthropic;
  return agent == "codex" ? Vendor::openai : Vendor::none;
}

Result<Invocation> build_invocation(InvocationFields fields) {
  TRY_VOID(Rules(fields).check());
  std::string encoded = canonical_invocation(fields);
  // Escapes can make the encoding larger than what was decoded; whoever stores it must be able to read it
  // back.
  if (encoded.size() > kMaxInvocationBytes) {
    return make_error(Code::usage,
                      fmt::format("$: larger than {} bytes in canonical form", kMaxInvocationBytes));
  }
  std::string digest = sha256_hex(encoded);
  return Invocation(std::move(fields), std::move(encoded), std::move(digest));
}

Result<Invocation> decode_invocation(std::string_view json) {
  auto fields = parse_invocation_fields(json);
  if (!fields) {
    Error error = std::move(fields).error();
    error.code = Code::usage;
    return error;
  }
  return build_invocation(*std::move(fields));
}

std::string new_attempt_id() {
  const std::string date = to_rfc3339(now());
  return fmt::format("{}{}{}-{}", date.substr(0, 4), date.substr(5, 2), date.substr(8, 2), random_hex(5));
}

}  // namespace cofferdam::contract
