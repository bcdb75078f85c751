#include "contract/invocation_json.h"

#include <utility>

#include "contract/json.h"
#include "contract/rules.h"

namespace cofferdam::contract {
namespace {

constexpr const char* kSchema = "cofferdam.invocation/1";
// Lengths are rules (invocation.cc); here only the size of the document bounds a text.
constexpr TextBounds kAnyText{0, kMaxInvocationBytes};
constexpr std::size_t kAnyCount = kMaxInvocationBytes;

std::vector<std::string> read_argv(ObjectReader* in) {
  return in->texts("argv", 0, kAnyCount, kAnyText);
}

AgentSpec read_agent(ObjectReader in) {
  AgentSpec out;
  out.name = in.text("name", kAnyText);
  if (in.has("argv")) {
    out.argv = read_argv(&in);
  } else {
    in.maybe_text("argv", kAnyText, Absent::allowed);
  }
  out.version = in.maybe_text("version", kAnyText, Absent::allowed);
  in.finish();
  return out;
}

std::size_t optional_choice(ObjectReader* in, const char* key, const std::vector<std::string>& names) {
  if (in->has(key)) return in->choice(key, names);
  in->maybe_text(key, kAnyText, Absent::allowed);
  return 0;
}

CloneRequest read_clone(ObjectReader in) {
  CloneRequest out;
  out.repository = in.text("repository", kAnyText);
  out.head = in.text("head", kAnyText);
  out.tree = in.maybe_text("tree", kAnyText, Absent::allowed);
  out.history = static_cast<History>(optional_choice(&in, "history", {"full", "none"}));
  if (auto base = in.maybe_object("work_tree", Absent::allowed)) {
    out.work_tree = WorkTreeBase{base->text("commit", kAnyText), base->text("tree", kAnyText)};
    base->finish();
  }
  in.finish();
  return out;
}

CapturedContext read_context(ObjectReader in) {
  CapturedContext out;
  out.name = in.text("name", kAnyText);
  out.version = in.integer("version", 1, kMaxJsonInteger);
  out.sha256 = in.text("sha256", kAnyText);
  if (in.has("files")) {
    for (ObjectReader& file : in.objects("files", 0, kAnyCount)) {
      out.files.push_back({file.text("path", kAnyText), file.text("sha256", kAnyText)});
      file.finish();
    }
  } else {
    in.maybe_text("files", kAnyText, Absent::allowed);
  }
  in.finish();
  return out;
}

// Kept as text: what is inside is judged where it is used.
std::optional<std::string> read_answer_schema(ObjectReader* in) {
  if (!in->has("answer_schema")) {
    in->maybe_text("answer_schema", kAnyText, Absent::allowed);
    return std::nullopt;
  }
  const Json& schema = in->raw("answer_schema");
  if (!schema.is_object()) in->fail("answer_schema", "must be an object");
  return canonical(schema);
}

std::vector<ApprovedCommand> read_commands(ObjectReader* in) {
  std::vector<ApprovedCommand> out;
  if (!in->has("commands")) {
    in->maybe_text("commands", kAnyText, Absent::allowed);
    return out;
  }
  for (ObjectReader& command : in->objects("commands", 0, kAnyCount)) {
    out.push_back({command.text("id", kAnyText), read_argv(&command)});
    command.finish();
  }
  return out;
}

// What is left out has the default, here as in the limits.
Destination read_destination(ObjectReader* in) {
  Destination out;
  out.host = in->text("host", kAnyText);
  if (auto port = in->maybe_integer("port", 1, 65535, Absent::allowed)) {
    out.port = static_cast<std::uint16_t>(*port);
  }
  if (in->has("plain")) {
    out.plain = in->boolean("plain");
  } else {
    in->maybe_text("plain", kAnyText, Absent::allowed);
  }
  if (in->has("addresses")) {
    out.addresses = in->texts("addresses", 0, kAnyCount, kAnyText);
  } else {
    in->maybe_text("addresses", kAnyText, Absent::allowed);
  }
  if (auto sent = in->maybe_integer("max_sent", 1, kMaxDestinationBytes, Absent::allowed)) {
    out.max_sent = *sent;
  }
  if (auto received = in->maybe_integer("max_received", 1, kMaxDestinationBytes, Absent::allowed)) {
    out.max_received = *received;
  }
  if (auto credential = in->maybe_text("credential", {1, 64}, Absent::allowed)) out.credential = *credential;
  in->finish();
  return out;
}

std::vector<Destination> read_destinations(ObjectReader* in) {
  std::vector<Destination> out;
  if (!in->has("destinations")) {
    in->maybe_text("destinations", kAnyText, Absent::allowed);
    return out;
  }
  for (ObjectReader& destination : in->objects("destinations", 0, kAnyCount)) {
    out.push_back(read_destination(&destination));
  }
  return out;
}

Deadlines read_deadlines(ObjectReader in) {
  Deadlines out;
  out.total = std::chrono::milliseconds(in.integer("total_ms", 1, kMaxTotalMs));
  if (auto grace = in.maybe_integer("grace_ms", 0, kMaxGraceMs, Absent::allowed)) {
    out.grace = std::chrono::milliseconds(*grace);
  }
  if (auto first = in.maybe_integer("first_output_ms", 1, kMaxTotalMs, Absent::allowed)) {
    out.first_output = std::chrono::milliseconds(*first);
  }
  if (auto idle = in.maybe_integer("idle_ms", 1, kMaxTotalMs, Absent::allowed)) {
    out.idle = std::chrono::milliseconds(*idle);
  }
  in.finish();
  return out;
}

Limits read_limits(ObjectReader in) {
  Limits out;
  for (const LimitRule& rule : kLimitRules) {
    if (auto value = in.maybe_integer(rule.key, rule.min, rule.max, Absent::allowed))
      out.*rule.field = *value;
  }
  in.finish();
  return out;
}

Json argv_json(const std::vector<std::string>& argv) {
  return Json(argv);
}

Json destinations_json(const std::vector<Destination>& destinations) {
  Json out = Json::array();
  for (const Destination& destination : destinations) {
    out.push_back(
        {{"host", destination.host},
         {"port", destination.port},
         {"plain", destination.plain},
         {"addresses", destination.addresses},
         {"max_sent", destination.max_sent},
         {"max_received", destination.max_received},
         {"credential", destination.credential.empty() ? Json(nullptr) : Json(destination.credential)}});
  }
  return out;
}

Json context_json(const std::optional<CapturedContext>& context) {
  if (!context.has_value()) return nullptr;
  Json files = Json::array();
  for (const ContextFile& file : context->files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  return {{"name", context->name},
          {"version", context->version},
          {"sha256", context->sha256},
          {"files", std::move(files)}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json work_tree_json(const std::optional<WorkTreeBase>& base) {
  if (!base.has_value()) return nullptr;
  return {{"commit", base->commit}, {"tree", base->tree}};
}

Json deadlines_json(const Deadlines& deadlines) {
  const auto ms = [](const std::optional<std::chrono::milliseconds>& bound) {
    return bound.has_value() ? Json(bound->count()) : Json(nullptr);
  };
  return {{"total_ms", deadlines.total.count()},
          {"grace_ms", deadlines.grace.count()},
          {"first_output_ms", ms(deadlines.first_output)},
          {"idle_ms", ms(deadlines.idle)}};
}

// It was read from an object, or the rules have refused it.
Json schema_json(const std::optional<std::string>& schema) {
  if (!schema.has_value()) return nullptr;
  auto parsed = parse_json(*schema, kMaxInvocationBytes);
  return parsed ? *std::move(parsed) : Json(nullptr);
}

Json commands_json(const std::vector<ApprovedCommand>& commands) {
  Json out = Json::array();
  for (const ApprovedCommand& command : commands) {
    out.push_back({{"id", command.id}, {"argv", argv_json(command.argv)}});
  }
  return out;
}

}  // namespace

Result<InvocationFields> parse_invocation_fields(std::string_view json) {
  TRY(Json document, parse_json(json, kMaxInvocationBytes));
  JsonFault fault;
  ObjectReader in(document, "$", &fault);
  InvocationFields out;
  in.constant("schema", kSchema);
  out.attempt_id = in.text("attempt_id", kAnyText);
  out.phase = static_cast<Phase>(in.choice("phase", {"planning", "question", "review", "implementation"}));
  out.agent = read_agent(in.object("agent"));
  out.clone = read_clone(in.object("clone"));
  out.prompt = in.text("prompt", kAnyText);
  if (auto context = in.maybe_object("context", Absent::allowed)) out.context = read_context(*context);
  out.answer_schema = read_answer_schema(&in);
  out.commands = read_commands(&in);
  out.deadlines = read_deadlines(in.object("deadlines"));
  if (auto limits = in.maybe_object("limits", Absent::allowed)) out.limits = read_limits(*limits);
  out.egress = static_cast<Vendor>(optional_choice(&in, "egress", {"none", "anthropic", "openai"}));
  out.destinations = read_destinations(&in);
  // An empty model in the fields means that there is none, which JSON says by null or by leaving it out.
  if (auto model = in.maybe_text("model", {1, kMaxModelBytes}, Absent::allowed)) out.model = *model;
  out.backend = static_cast<Backend>(optional_choice(&in, "backend", {"native", "docker"}));
  out.image = in.maybe_text("image", kAnyText, Absent::allowed);
  out.shell = static_cast<Shell>(optional_choice(&in, "shell", {"sandboxed", "none"}));
  out.when_full = static_cast<WhenFull>(optional_choice(&in, "when_full", {"queue", "refuse"}));
  in.finish();
  if (fault.failed()) return fault.error();
  return out;
}

std::string canonical_invocation(const InvocationFields& fields) {
  Json limits = Json::object();
  for (const LimitRule& rule : kLimitRules) limits[rule.key] = fields.limits.*rule.field;
  const Json document = {
      {"schema", kSchema},
      {"attempt_id", fields.attempt_id},
      {"phase", phase_name(fields.phase)},
      {"agent",
       {{"name", fields.agent.name},
        {"argv", argv_json(fields.agent.argv)},
        {"version", or_null(fields.agent.version)}}},
      {"clone",
       {{"repository", fields.clone.repository},
        {"head", fields.clone.head},
        {"tree", or_null(fields.clone.tree)},
        {"history", history_name(fields.clone.history)},
        {"work_tree", work_tree_json(fields.clone.work_tree)}}},
      {"prompt", fields.prompt},
      {"context", context_json(fields.context)},
      {"answer_schema", schema_json(fields.answer_schema)},
      {"commands", commands_json(fields.commands)},
      {"deadlines", deadlines_json(fields.deadlines)},
      {"limits", limits},
      {"egress", vendor_name(fields.egress)},
      {"destinations", destinations_json(fields.destinations)},
      {"model", fields.model.empty() ? Json(nullptr) : Json(fields.model)},
      {"backend", backend_name(fields.backend)},
      {"image", or_null(fields.image)},
      {"shell", shell_name(fields.shell)},
      {"when_full", when_full_name(fields.when_full)},
  };
  return canonical(document);
}

}  // namespace cofferdam::contract
