#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/exit_code.h"
#include "cli/table.h"

namespace cofferdam::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  cofferdam run "make the failing test pass"
  cofferdam plan --model claude-sonnet-5 "split the parser into two files"
  cofferdam ask --repo ~/src/app --agent codex "where is the retry logic?"
  cofferdam run --agent command -- make test
  cofferdam run --allow-host registry.example "update the dependencies"
  cofferdam exec - < invocation.json
  cofferdam diff 20261130-3f9a2c71d0 | git apply --stat
  cofferdam apply 20261130-3f9a2c71d0
  cofferdam log --follow 20261130-3f9a2c71d0
  cofferdam prune --older-than 30d --dry-run
  cofferdam image build

Exit codes:
  0 completed     1 failed     2 usage error     3 refused     4 a limit was reached     5 cancelled
  6 setup failed, lost, or an internal error
  verify: 0 intact, 1 not
  gate: 0 every attack is stopped by the layer that claims to, 1 not

The result goes to standard output, progress to standard error.
Configuration: $XDG_CONFIG_HOME/cofferdam/config.toml. State: $XDG_STATE_HOME/cofferdam or COFFERDAM_STATE_DIR.)";

// Everything that any verb may set; the verb that was named takes its part.
struct All {
  RunOptions run;
  ExecOptions exec;
  ListOptions list;
  ShowOptions show;
  DiffOptions diff;
  ApplyOptions apply;
  LogOptions log;
  VerifyOptions verify;
  DiscardOptions discard;
  PruneOptions prune;
  DfOptions df;
  CancelOptions cancel;
  CheckpointOptions checkpoint;
  DoctorOptions doctor;
  GateOptions gate;
  RecoverOptions recover;
  ContextOptions context;
  HostSetupOptions host_setup;
  ImageOptions image;
};

void add_config(CLI::App* verb, std::optional<std::string>* config) {
  verb->add_option("--config", *config, "configuration file instead of the default one")->type_name("FILE");
}

void add_gate_verb(CLI::App* app, GateOptions* options) {
  CLI::App* verb = app->add_subcommand(
      "gate", "try to break out of boxes on this host, and show which layer of a box stops what");
  verb->add_option("--only", options->only, "one attack, or one of its rows")->type_name("ID");
  verb->add_flag("--list", options->list, "run nothing, show the attacks");
  add_config(verb, &options->config);
  verb->add_flag("--json", options->json, "as JSON, one line");
}

void add_host_setup_verb(CLI::App* app, HostSetupOptions* options) {
  CLI::App* verb = app->add_subcommand("host-setup",
                                       "as root, for the attempts of a user who is not: hand control groups "
                                       "over, which bound memory, processes and "
                                       "cpu, and make disks of fixed size (slots). Control groups and mounts "
                                       "go with a boot: run it again then");
  verb->add_option("--user", options->user, "whose attempts use them")->required()->type_name("NAME");
  CLI::Option* slots =
      verb->add_option("--slots", options->slots, "how many slots; those that are there stay as they are")
          ->capture_default_str();
  CLI::Option* bytes = verb->add_option("--bytes", options->bytes, "of each slot")->needs(slots);
  CLI::Option* inodes = verb->add_option("--inodes", options->inodes, "of each slot")->needs(slots);
  verb->add_option("--dir", options->dir, "where they are; workspace.slots_dir of the user's configuration")
      ->capture_default_str();
  verb->add_option("--cgroup", options->cgroup,
                   "name of the subtree of control groups; box.cgroup of the user's configuration")
      ->capture_default_str();
  verb->add_flag("--remove", options->remove, "remove that user's slots and control groups instead")
      ->excludes(bytes)
      ->excludes(inodes);
}

void add_image_verb(CLI::App* app, ImageOptions* options) {
  CLI::App* image =
      app->add_subcommand("image", "pinned root file systems for boxes, named by their SHA-256");
  image->require_subcommand(1);
  CLI::App* build = image->add_subcommand(
      "build", "make one from a list of Debian packages and agents, which apt downloads");
  build->add_option("--list", options->file, "the list (default: the one that came with cofferdam)")
      ->type_name("FILE");
  CLI::App* import =
      image->add_subcommand("import", "make one from a `docker save` archive or an OCI layout");
  import->add_option("file", options->file, "the archive, a tar that is not compressed")
      ->type_name("FILE")
      ->required();
  CLI::App* lock = image->add_subcommand("lock", "write the versions and digests of a list anew");
  lock->add_option("file", options->file, "the list, which is changed")->type_name("FILE")->required();
  CLI::App* list = image->add_subcommand("list", "the images, newest first");
  CLI::App* verify = image->add_subcommand("verify", "compare every byte with the image's name");
  verify->add_option("id", options->id, "the image (default: all)")->type_name("ID");
  CLI::App* remove = image->add_subcommand("remove", "remove one that no attempt uses");
  remove->add_option("id", options->id, "the image; 8 digits are enough")->type_name("ID")->required();
  for (CLI::App* sub : {build, import, lock}) add_config(sub, &options->config);
  for (CLI::App* sub : {build, import, list, verify}) sub->add_flag("--json", options->json, "as JSON");
}

struct RunVerb {
  const char* name;
  contract::Phase phase;
  const char* description;
};

constexpr const char* kCaptureHelp =
    "for debugging: write what the agent and the vendor say to each other into a file of the attempt's";

constexpr RunVerb kRunVerbs[] = {
    {"run", contract::Phase::implementation,
     "let an agent change the repository; the change comes back as a branch"},
    {"plan", contract::Phase::planning, "let an agent plan a change; the work tree is read-only"},
    {"ask", contract::Phase::question, "let an agent answer a question; the work tree is read-only"},
    {"review", contract::Phase::review, "let an agent review the repository; the work tree is read-only"},
};

// What of the repository comes along.
void add_source_options(CLI::App* sub, RunOptions* options) {
  sub->add_option("--repo", options->repository, "the git repository")
      ->type_name("DIR")
      ->capture_default_str();
  sub->add_option("--base", options->base, "the trusted commit to start from")
      ->type_name("REV")
      ->capture_default_str();
  sub->add_option("--history", options->history,
                  "how much of the history the box gets: full, or none (the commit and its tree)")
      ->check(CLI::IsMember({"full", "none"}))
      ->capture_default_str();
  CLI::Option* dirty =
      sub->add_flag("--include-dirty", options->include_dirty,
                    "take uncommitted changes of tracked files along, as a commit on top of the base");
  sub->add_flag("--include-untracked", options->include_untracked,
                "with --include-dirty: untracked files too, but for ignored ones")
      ->needs(dirty);
}

void add_run_verb(CLI::App* app, const RunVerb& verb, RunOptions* options) {
  CLI::App* sub = app->add_subcommand(verb.name, verb.description);
  sub->add_option("--agent", options->agent, "claude, codex, or command: any program, given behind --")
      ->check(CLI::IsMember({"claude", "codex", "command"}))
      ->capture_default_str();
  add_source_options(sub, options);
  sub->add_option("--backend", options->backend, "what makes the box (docker: not in this version)")
      ->check(CLI::IsMember({"native", "docker"}))
      ->capture_default_str();
  sub->add_option(
         "--shell", options->shell,
         "sandboxed: the host's programs, in the box; none: nothing but the agent's own can be executed")
      ->check(CLI::IsMember({"sandboxed", "none"}))
      ->capture_default_str();
  sub->add_option("--image", options->image,
                  "a pinned image as the box's root (`cofferdam image list`), or host (default: from the "
                  "configuration)")
      ->type_name("ID");
  sub->add_option("--model", options->model, "the agent's model (default: from the configuration)")
      ->type_name("M");
  sub->add_option("--deadline", options->deadline, "total time, such as 90s, 30m or 1h30m")
      ->type_name("TIME");
  sub->add_option("--egress", options->egress,
                  "for --agent command: the vendor that it may reach (default: none)")
      ->check(CLI::IsMember({"none", "anthropic", "openai"}));
  sub->add_option("--allow-host", options->allowed,
                  "a host that programs in the box may reach over TLS (port 443), beside the vendor; may be "
                  "given more than once")
      ->type_name("HOST[:PORT]")
      ->allow_extra_args(false);  // one each time: what follows is the prompt
  sub->add_option("--attempt-id", options->attempt_id, "an id of your own; it can be used once, ever")
      ->type_name("ID");
  add_config(sub, &options->config);
  sub->add_flag("--capture-bodies", options->capture_bodies, kCaptureHelp);
  sub->add_flag("--json", options->json, "print the result record as one line of JSON");
  sub->add_option("prompt", options->prompt, "what to do; - reads it from standard input")
      ->type_name("PROMPT");
  sub->footer("\nWith --agent command the program stands behind --:  cofferdam " + std::string(verb.name) +
              " --agent command -- make test");
}

void add_record_verbs(CLI::App* app, All* all) {
  CLI::App* list = app->add_subcommand("list", "the attempts, newest first");
  list->add_flag("--json", all->list.json, "as a JSON array");
  CLI::App* show = app->add_subcommand("show", "the result of one attempt");
  show->add_option("id", all->show.id, "the attempt")->type_name("ID")->required();
  show->add_flag("--json", all->show.json, "the stored result record as one line of JSON");
  CLI::App* diff = app->add_subcommand("diff", "the change of one attempt as a patch");
  diff->add_option("id", all->diff.id, "the attempt")->type_name("ID")->required();
  diff->add_flag("--json", all->diff.json, "the change and its patch as one line of JSON");
  CLI::App* apply = app->add_subcommand(
      "apply", "bring the work of one attempt onto the branch that is checked out, or touch nothing");
  apply->add_option("id", all->apply.id, "the attempt")->type_name("ID")->required();
  apply->add_option("--repo", all->apply.repository, "a work tree of its repository (default: the attempt's)")
      ->type_name("DIR");
  apply
      ->add_option(
          "--accept", all->apply.accepted,
          "a file that some program follows (hooks, CI, attributes, agents), or a folder of such, that "
          "you have looked at; may be given more than once")
      ->type_name("PATH")
      ->allow_extra_args(false);
  add_config(apply, &all->apply.config);
  apply->add_flag("--dry-run", all->apply.dry_run, "touch nothing, say what would happen");
  apply->add_flag("--json", all->apply.json, "as a JSON object");
  CLI::App* cancel = app->add_subcommand("cancel", "ask a running attempt to end");
  cancel->add_option("id", all->cancel.id, "the attempt")->type_name("ID")->required();
  cancel->add_option("--reason", all->cancel.reason, "kept in its result")->type_name("TEXT");
  cancel->add_flag("--json", all->cancel.json, "as a JSON object");
  CLI::App* checkpoint = app->add_subcommand(
      "checkpoint", "commit what a running attempt has made so far, on the way to its branch");
  checkpoint->add_option("id", all->checkpoint.id, "the attempt")->type_name("ID")->required();
  checkpoint->add_option("--reason", all->checkpoint.reason, "the commit's message")->type_name("TEXT");
  checkpoint->add_flag("--json", all->checkpoint.json, "as a JSON object");
}

void add_log_verbs(CLI::App* app, All* all) {
  CLI::App* log = app->add_subcommand("log", "the events of one attempt, one line each");
  log->add_option("id", all->log.id, "the attempt")->type_name("ID")->required();
  log->add_flag("--follow,-f", all->log.follow, "go on until the attempt has ended");
  log->add_flag("--json", all->log.json, "the events as exec printed them, one JSON line each");
  CLI::App* verify = app->add_subcommand(
      "verify", "whether the ledger is what was written: nothing edited, cut or put in another order");
  verify->add_option("id", all->verify.id, "one attempt (default: all)")->type_name("ID");
  verify
      ->add_option("--result", all->verify.result,
                   "compare with a result record that was printed earlier; - reads it from standard input")
      ->type_name("FILE");
  verify->add_flag("--json", all->verify.json, "as a JSON object");
}

void add_keeping_verbs(CLI::App* app, All* all) {
  CLI::App* discard =
      app->add_subcommand("discard", "remove what is kept of one attempt's work; its record stays");
  discard->add_option("id", all->discard.id, "the attempt")->type_name("ID")->required();
  discard->add_flag("--force", all->discard.force, "also work that was never handed off");
  discard->add_flag("--json", all->discard.json, "as a JSON object");
  CLI::App* prune = app->add_subcommand("prune", "remove old attempts, records too; their ids stay used");
  prune->add_option("--older-than", all->prune.older_than, "only what ended so long ago, such as 30d or 12h")
      ->type_name("TIME")
      ->capture_default_str();
  prune->add_option("--keep", all->prune.keep, "keep the newest N finished attempts, whatever their age")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  prune->add_flag("--force", all->prune.force, "also work that was never handed off");
  prune->add_flag("--dry-run", all->prune.dry_run, "remove nothing, say what would be removed");
  add_config(prune, &all->prune.config);
  prune->add_flag("--json", all->prune.json, "as a JSON object");
  CLI::App* df = app->add_subcommand("df", "what Cofferdam keeps, and what it takes");
  add_config(df, &all->df.config);
  df->add_flag("--json", all->df.json, "as a JSON object");
}

// CLI11 would wrap a negative number around, and take one that is too large for the largest.
std::string version_problem(const std::string& text) {
  const bool number = text.find_first_not_of("0123456789") == std::string::npos;
  return number && !text.empty() && text.size() <= 16 ? ""
                                                      : "\"" + one_line(text, 40) + "\" is not a version";
}

void add_context_verb(CLI::App* app, ContextOptions* options) {
  CLI::App* context =
      app->add_subcommand("context", "which version of a captured context is the current one");
  context->require_subcommand(1);
  CLI::App* set = context->add_subcommand("set", "move a context from the version you saw to a higher one");
  set->add_option("name", options->name, "the context")->type_name("NAME")->required();
  set->add_option("--from", options->from, "the version that it has now; 0: there is none yet")
      ->type_name("N")
      ->check(version_problem)
      ->required();
  set->add_option("--to", options->to, "the version that it gets")
      ->type_name("M")
      ->check(version_problem)
      ->required();
  set->add_option("--sha256", options->sha256, "of that version; invocations must then name it")
      ->type_name("HEX");
  CLI::App* show = context->add_subcommand("show", "one context");
  show->add_option("name", options->name, "the context")->type_name("NAME")->required();
  CLI::App* list = context->add_subcommand("list", "all contexts, by name");
  for (CLI::App* sub : {set, show, list}) sub->add_flag("--json", options->json, "as JSON");
}

void add_verbs(CLI::App* app, All* all) {
  for (const RunVerb& verb : kRunVerbs) add_run_verb(app, verb, &all->run);
  CLI::App* exec =
      app->add_subcommand("exec", "run an invocation in JSON; events and the result as JSON lines");
  exec->add_option("file", all->exec.file,
                   "the invocation; - reads it from standard input, then cancel lines")
      ->type_name("FILE")
      ->required();
  exec->add_flag("--cancel-on-eof", all->exec.cancel_on_eof, "with -: the end of standard input cancels");
  exec->add_flag("--capture-bodies", all->exec.capture_bodies, kCaptureHelp);
  add_config(exec, &all->exec.config);
  add_record_verbs(app, all);
  CLI::App* recover = app->add_subcommand(
      "recover", "close attempts whose supervisor has gone, keep their work, and publish what could not be");
  add_config(recover, &all->recover.config);
  recover->add_flag("--json", all->recover.json, "as a JSON object");
  add_context_verb(app, &all->context);
  add_log_verbs(app, all);
  add_keeping_verbs(app, all);
  CLI::App* doctor = app->add_subcommand("doctor", "whether this host can run a box, and what to do if not");
  add_config(doctor, &all->doctor.config);
  CLI::Option* doctor_json = doctor->add_flag("--json", all->doctor.json, "as a JSON object");
  doctor
      ->add_flag("--seccomp", all->doctor.seccomp,
                 "print the boxes' system-call filter instead: the table with its reasons, and its code")
      ->excludes(doctor_json);
  add_gate_verb(app, &all->gate);
  add_image_verb(app, &all->image);
  add_host_setup_verb(app, &all->host_setup);
  app->add_subcommand("internal-gateway", "started by cofferdam itself")
      ->group("");  // no group: not in the help
  app->add_subcommand("internal-resolver", "started by cofferdam itself")->group("");
  app->add_subcommand("internal-broker", "started by cofferdam itself")->group("");
  app->add_subcommand("internal-place", "started by cofferdam itself")->group("");
}

ContextOptions chosen_context(const CLI::App& context, ContextOptions options) {
  const std::string action = context.get_subcommands().front()->get_name();
  if (action == "set") options.action = ContextOptions::Action::set;
  if (action == "show") options.action = ContextOptions::Action::show;
  return options;
}

ImageOptions chosen_image(const CLI::App& image, ImageOptions options) {
  using Action = ImageOptions::Action;
  const std::pair<const char*, Action> actions[] = {{"build", Action::build},   {"import", Action::import},
                                                    {"lock", Action::lock},     {"list", Action::list},
                                                    {"verify", Action::verify}, {"remove", Action::remove}};
  const std::string chosen = image.get_subcommands().front()->get_name();
  for (const auto& [name, action] : actions) {
    if (chosen == name) options.action = action;
  }
  return options;
}

Command chosen(const CLI::App& app, const All& all) {
  const std::string name = app.get_subcommands().front()->get_name();
  for (const RunVerb& verb : kRunVerbs) {
    if (name != verb.name) continue;
    RunOptions run = all.run;
    run.phase = verb.phase;
    return run;
  }
  if (name == "exec") return all.exec;
  if (name == "list") return all.list;
  if (name == "show") return all.show;
  if (name == "diff") return all.diff;
  if (name == "apply") return all.apply;
  if (name == "log") return all.log;
  if (name == "verify") return all.verify;
  if (name == "discard") return all.discard;
  if (name == "prune") return all.prune;
  if (name == "df") return all.df;
  if (name == "cancel") return all.cancel;
  if (name == "checkpoint") return all.checkpoint;
  if (name == "doctor") return all.doctor;
  if (name == "gate") return all.gate;
  if (name == "recover") return all.recover;
  if (name == "context") return chosen_context(*app.get_subcommands().front(), all.context);
  if (name == "host-setup") return all.host_setup;
  if (name == "image") return chosen_image(*app.get_subcommands().front(), all.image);
  if (name == "internal-resolver") return ResolverOptions{};
  if (name == "internal-broker") return BrokerOptions{};
  if (name == "internal-place") return PlaceOptions{};
  return GatewayOptions{};
}

std::string usage_line(const CLI::ParseError& error) {
  return "cofferdam: " + one_line(error.what()) + "; see cofferdam --help\n";
}

// Only run, plan, ask and review take something behind "--": a program, or a prompt that starts with a dash.
Parsed with_trailing(Parsed parsed, std::vector<std::string> trailing) {
  auto* run = parsed.command ? std::get_if<RunOptions>(&*parsed.command) : nullptr;
  if (run == nullptr) {
    if (!parsed.command) return parsed;  // help or an error comes first
    return {std::nullopt, kExitUsage, "",
            "cofferdam: this verb takes nothing behind --; see cofferdam --help\n"};
  }
  if (run->agent == "command") {
    run->argv = std::move(trailing);
  } else if (!run->prompt && trailing.size() == 1) {
    run->prompt = std::move(trailing.front());
  } else if (!trailing.empty()) {
    return {
        std::nullopt, kExitUsage, "",
        "cofferdam: a program behind -- is for --agent command; for an agent give one PROMPT, in quotes\n"};
  }
  return parsed;
}

Parsed parse_words(std::vector<std::string> words) {
  const std::string first = words.empty() ? "" : words.front();
  CLI::App app("Runs coding agents on git repositories inside a sealed, bounded box.", "cofferdam");
  app.footer(kFooter);
  app.set_version_flag("--version", "cofferdam " COFFERDAM_VERSION);
  app.require_subcommand(1);
  All all;
  add_verbs(&app, &all);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::Success& success) {  // help and version
    std::ostringstream out;
    app.exit(success, out, out);
    return {std::nullopt, 0, out.str(), ""};
  } catch (const CLI::ParseError& error) {
    // CLI11 would only say that a verb is required, not that this is none.
    const bool no_verb = app.get_subcommands().empty() && !first.empty() && first.front() != '-';
    if (no_verb) {
      return {std::nullopt, kExitUsage, "",
              "cofferdam: \"" + one_line(first, 80) + "\" is not a verb; see cofferdam --help\n"};
    }
    return {std::nullopt, kExitUsage, "", usage_line(error)};
  }
  return {chosen(app, all), 0, "", ""};
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return {std::nullopt, kExitUsage, "",
            "cofferdam: a verb is missing, such as run, ask or list; see cofferdam --help\n"};
  }
  // What stands behind "--" belongs to the program that is run: CLI11 never sees it.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Parsed parsed = parse_words({arguments.begin(), dashes});
  if (dashes == arguments.end()) return parsed;
  return with_trailing(std::move(parsed), {dashes + 1, arguments.end()});
}

}  // namespace cofferdam::cli
