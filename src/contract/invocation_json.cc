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
  in.finish();
  return out;
}

CloneRequest read_clone(ObjectReader in) {
  CloneRequest out;
  out.repository = in.text("repository", kAnyText);
  out.head = in.text("head", kAnyText);
  out.tree = in.maybe_text("tree", kAnyText, Absent::allowed);
  in.finish();
  return out;
}

CapturedContext read_context(ObjectReader in) {
  CapturedContext out;
  out.name = in.text("name", kAnyText);
  out.version = in.integer("version", 1, kMaxJsonInteger);
  out.sha256 = in.text("sha256", kAnyText);
  in.finish();
  return out;
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
  if (auto total = in.maybe_integer("total_ms", 1, kMaxTotalMs, Absent::allowed)) {
    out.total = std::chrono::milliseconds(*total);
  }
  if (auto grace = in.maybe_integer("grace_ms", 0, kMaxGraceMs, Absent::allowed)) {
    out.grace = std::chrono::milliseconds(*grace);
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

std::size_t optional_choice(ObjectReader* in, const char* key, const std::vector<std::string>& names) {
  if (in->has(key)) return in->choice(key, names);
  in->maybe_text(key, kAnyText, Absent::allowed);
  return 0;
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
  out.commands = read_commands(&in);
  if (auto deadlines = in.maybe_object("deadlines", Absent::allowed))
    out.deadlines = read_deadlines(*deadlines);
  if (auto limits = in.maybe_object("limits", Absent::allowed)) out.limits = read_limits(*limits);
  out.egress = static_cast<Vendor>(optional_choice(&in, "egress", {"none", "anthropic", "openai"}));
  out.destinations = read_destinations(&in);
  // An empty model in the fields means that there is none, which JSON says by null or by leaving it out.
  if (auto model = in.maybe_text("model", {1, kMaxModelBytes}, Absent::allowed)) out.model = *model;
  out.backend = static_cast<Backend>(optional_choice(&in, "backend", {"native", "docker"}));
  in.finish();
  if (fault.failed()) return fault.error();
  return out;
}

std::string canonical_invocation(const InvocationFields& fields) {
  Json limits = Json::object();
  for (const LimitRule& rule : kLimitRules) limits[rule.key] = fields.limits.*rule.field;
  Json context = nullptr;
  if (fields.context.has_value()) {
    context = {{"name", fields.context->name},
               {"version", fields.context->version},
               {"sha256", fields.context->sha256}};
  }
  const Json document = {
      {"schema", kSchema},
      {"attempt_id", fields.attempt_id},
      {"phase", phase_name(fields.phase)},
      {"agent", {{"name", fields.agent.name}, {"argv", argv_json(fields.agent.argv)}}},
      {"clone",
       {{"repository", fields.clone.repository},
        {"head", fields.clone.head},
        {"tree", fields.clone.tree.has_value() ? Json(*fields.clone.tree) : Json(nullptr)}}},
      {"prompt", fields.prompt},
      {"context", context},
      {"commands", commands_json(fields.commands)},
      {"deadlines",
       {{"total_ms", fields.deadlines.total.count()}, {"grace_ms", fields.deadlines.grace.count()}}},
      {"limits", limits},
      {"egress", vendor_name(fields.egress)},
      {"destinations", destinations_json(fields.destinations)},
      {"model", fields.model.empty() ? Json(nullptr) : Json(fields.model)},
      {"backend", backend_name(fields.backend)},
  };
  return canonical(document);
}

}  // namespace cofferdam::contract
