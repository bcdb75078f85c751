#include "cli/parse.h"

#include <gtest/gtest.h>

#include "cli/request.h"

namespace cofferdam::cli {
namespace {

template <typename Options>
Options parsed(const std::vector<std::string>& arguments) {
  Parsed result = parse(arguments);
  if (!result.command || !std::holds_alternative<Options>(*result.command)) {
    ADD_FAILURE() << result.err << result.out;
    return {};
  }
  return std::get<Options>(*result.command);
}

void expect_usage(const std::vector<std::string>& arguments, const std::string& part) {
  const Parsed result = parse(arguments);
  EXPECT_FALSE(result.command.has_value());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("cofferdam: ", 0), 0U) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line: " << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Parse, PhasesOfTheRunVerbs) {
  EXPECT_EQ(parsed<RunOptions>({"run", "x"}).phase, contract::Phase::implementation);
  EXPECT_EQ(parsed<RunOptions>({"plan", "x"}).phase, contract::Phase::planning);
  EXPECT_EQ(parsed<RunOptions>({"ask", "x"}).phase, contract::Phase::question);
  EXPECT_EQ(parsed<RunOptions>({"review", "x"}).phase, contract::Phase::review);
}

TEST(Parse, DefaultsAndFlags) {
  const auto plain = parsed<RunOptions>({"run", "do it"});
  EXPECT_EQ(plain.agent, "claude");
  EXPECT_EQ(plain.repository, ".");
  EXPECT_EQ(plain.base, "HEAD");
  EXPECT_EQ(plain.backend, "native");
  EXPECT_EQ(plain.prompt, "do it");
  EXPECT_FALSE(plain.json);
  const auto full = parsed<RunOptions>({"plan", "--repo", "/r", "--base=v1", "--model", "m", "--deadline",
                                        "30m", "--json", "--config", "/c", "--attempt-id", "a-1", "-"});
  EXPECT_EQ(full.repository, "/r");
  EXPECT_EQ(full.base, "v1");
  EXPECT_EQ(full.model, "m");
  EXPECT_EQ(full.deadline, "30m");
  EXPECT_EQ(full.config, "/c");
  EXPECT_EQ(full.attempt_id, "a-1");
  EXPECT_EQ(full.prompt, "-");
  EXPECT_TRUE(full.json);
}

TEST(Parse, WhatComesAlongFromTheRepository) {
  const auto plain = parsed<RunOptions>({"run", "x"});
  EXPECT_EQ(plain.history, "full");
  EXPECT_FALSE(plain.include_dirty || plain.include_untracked);
  for (const char* verb : {"run", "plan", "ask", "review"}) {
    const auto all =
        parsed<RunOptions>({verb, "--history", "none", "--include-dirty", "--include-untracked", "x"});
    EXPECT_EQ(all.history, "none");
    EXPECT_TRUE(all.include_dirty && all.include_untracked);
  }
  EXPECT_EQ(request_fields(plain, {}, "x")->clone.history, contract::History::full);
  EXPECT_EQ(request_fields(parsed<RunOptions>({"run", "--history", "none", "x"}), {}, "x")->clone.history,
            contract::History::none);
  expect_usage({"run", "--history", "some", "x"}, "some");
  expect_usage({"run", "--include-untracked", "x"}, "--include-dirty");
}

TEST(Parse, VerbsThatReadAndKeepTheRecord) {
  EXPECT_FALSE(parsed<LogOptions>({"log", "a-1"}).follow);
  EXPECT_TRUE(parsed<LogOptions>({"log", "--follow", "--json", "a-1"}).follow);
  EXPECT_FALSE(parsed<VerifyOptions>({"verify"}).id.has_value());
  const auto verify = parsed<VerifyOptions>({"verify", "a-1", "--result", "-"});
  EXPECT_EQ(verify.id, "a-1");
  EXPECT_EQ(verify.result, "-");
  EXPECT_TRUE(parsed<DiscardOptions>({"discard", "a-1", "--force"}).force);
  const auto prune = parsed<PruneOptions>({"prune"});
  EXPECT_EQ(prune.older_than, "30d");
  EXPECT_EQ(prune.keep, 0U);
  EXPECT_FALSE(prune.force || prune.dry_run || prune.json);
  const auto full = parsed<PruneOptions>(
      {"prune", "--older-than", "1h", "--keep", "5", "--force", "--dry-run", "--json", "--config", "/c"});
  EXPECT_EQ(full.older_than, "1h");
  EXPECT_EQ(full.keep, 5U);
  EXPECT_TRUE(full.force && full.dry_run && full.json);
  EXPECT_EQ(full.config, "/c");
  EXPECT_TRUE(parsed<DfOptions>({"df", "--json"}).json);
  expect_usage({"log"}, "id");
  expect_usage({"discard"}, "id");
  expect_usage({"prune", "--keep", "-1"}, "keep");
}

TEST(Parse, ProgramBehindDashesIsNotLookedInto) {
  const auto run = parsed<RunOptions>({"run", "--agent", "command", "--", "make", "--json", "--", "-j2"});
  EXPECT_EQ(run.argv, (std::vector<std::string>{"make", "--json", "--", "-j2"}));
  EXPECT_FALSE(run.json);
  EXPECT_EQ(parsed<RunOptions>({"ask", "--", "--what is this?"}).prompt, "--what is this?");
}

TEST(Parse, OtherVerbs) {
  EXPECT_EQ(parsed<ExecOptions>({"exec", "-"}).file, "-");
  EXPECT_TRUE(parsed<ExecOptions>({"exec", "-", "--cancel-on-eof"}).cancel_on_eof);
  EXPECT_TRUE(parsed<ListOptions>({"list", "--json"}).json);
  EXPECT_EQ(parsed<ShowOptions>({"show", "a-1"}).id, "a-1");
  EXPECT_EQ(parsed<DiffOptions>({"diff", "a-1"}).id, "a-1");
  EXPECT_FALSE(parsed<DiffOptions>({"diff", "a-1"}).json);
  EXPECT_TRUE(parsed<DiffOptions>({"diff", "--json", "a-1"}).json);
  const auto apply =
      parsed<ApplyOptions>({"apply", "--accept", "x", "--accept", "y/", "a-1", "--dry-run", "--json"});
  EXPECT_EQ(apply.id, "a-1");
  EXPECT_EQ(apply.accepted, (std::vector<std::string>{"x", "y/"}));
  EXPECT_TRUE(apply.dry_run && apply.json);
  EXPECT_FALSE(apply.repository.has_value());
  EXPECT_EQ(parsed<CancelOptions>({"cancel", "a-1", "--reason", "why"}).reason, "why");
  EXPECT_TRUE(parsed<CancelOptions>({"cancel", "a-1", "--json"}).json);
  EXPECT_TRUE(parsed<DoctorOptions>({"doctor", "--json"}).json);
  EXPECT_TRUE(parsed<GateOptions>({"gate", "--json"}).json);
  EXPECT_TRUE(parsed<GateOptions>({"gate", "--list"}).list);
  EXPECT_EQ(parsed<GateOptions>({"gate", "--only", "mount-tmpfs"}).only, "mount-tmpfs");
  EXPECT_FALSE(parsed<GateOptions>({"gate"}).only.has_value());
  parsed<GatewayOptions>({"internal-gateway"});
  parsed<ResolverOptions>({"internal-resolver"});
}

TEST(Parse, ContextHasVerbsOfItsOwn) {
  const auto set = parsed<ContextOptions>({"context", "set", "notes", "--from", "0", "--to", "3"});
  EXPECT_EQ(set.action, ContextOptions::Action::set);
  EXPECT_EQ(set.name, "notes");
  EXPECT_EQ(set.to, 3U);
  EXPECT_FALSE(set.sha256.has_value());
  const auto show = parsed<ContextOptions>({"context", "show", "notes", "--json"});
  EXPECT_EQ(show.action, ContextOptions::Action::show);
  EXPECT_TRUE(show.json);
  EXPECT_EQ(parsed<ContextOptions>({"context", "list"}).action, ContextOptions::Action::list);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"context"},
                                                {"context", "set", "notes", "--from", "0"},
                                                {"context", "set", "notes", "--from", "-1", "--to", "3"},
                                                {"context", "show"}}) {
    EXPECT_EQ(parse(wrong).exit_code, 2) << wrong.back();
  }
}

TEST(Parse, UsageErrorsAreOneLine) {
  expect_usage({}, "a verb is missing");
  expect_usage({"fly"}, "fly");
  expect_usage({"run", "--nope", "x"}, "--nope");
  expect_usage({"run", "--agent", "gemini", "x"}, "gemini");
  expect_usage({"run", "a", "b"}, "b");
  expect_usage({"run", "x", "--", "make"}, "--agent command");
  expect_usage({"list", "--", "x"}, "--");
  expect_usage({"show"}, "id");
  expect_usage({"exec"}, "file");
}

TEST(Parse, HelpAndVersionGoToStandardOutput) {
  const Parsed help = parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("Exit codes"), std::string::npos);
  EXPECT_NE(help.out.find("cofferdam run"), std::string::npos);
  EXPECT_EQ(help.out.find("internal-gateway"), std::string::npos);
  EXPECT_NE(parse({"run", "--help"}).out.find("--deadline"), std::string::npos);
  EXPECT_EQ(parse({"--version"}).out.rfind("cofferdam ", 0), 0U);
}

contract::InvocationFields fields_of(const std::vector<std::string>& arguments, const std::string& prompt) {
  contract::Config config;
  config.limits.requests = 7;
  config.deadlines.total = std::chrono::minutes(3);
  auto fields = request_fields(parsed<RunOptions>(arguments), config, prompt);
  EXPECT_TRUE(fields) << fields.error().line();
  return fields ? *fields : contract::InvocationFields{};
}

TEST(Request, ConfigurationUnderFlags) {
  const auto plain = fields_of({"run", "x"}, "x");
  EXPECT_EQ(plain.egress, contract::Vendor::anthropic);
  EXPECT_EQ(plain.model, contract::Config{}.claude_model);
  EXPECT_EQ(plain.limits.requests, 7U);
  EXPECT_EQ(plain.deadlines.total, std::chrono::minutes(3));
  EXPECT_FALSE(plain.attempt_id.empty());
  const auto flagged =
      fields_of({"run", "x", "--model", "m", "--deadline", "90s", "--attempt-id", "a-1"}, "x");
  EXPECT_EQ(flagged.model, "m");
  EXPECT_EQ(flagged.deadlines.total, std::chrono::seconds(90));
  EXPECT_EQ(flagged.attempt_id, "a-1");
}

TEST(Request, CommandHasNoEgressUnlessAsked) {
  const auto plain = fields_of({"run", "--agent", "command", "--", "true"}, "");
  EXPECT_EQ(plain.egress, contract::Vendor::none);
  EXPECT_EQ(plain.model, "");
  EXPECT_EQ(plain.agent.argv, std::vector<std::string>{"true"});
  EXPECT_EQ(fields_of({"run", "--agent", "command", "--egress", "anthropic", "--", "true"}, "").egress,
            contract::Vendor::anthropic);
}

TEST(Request, EachAgentHasItsVendorAndModel) {
  const auto codex = fields_of({"run", "--agent", "codex", "x"}, "x");
  EXPECT_EQ(codex.agent.name, "codex");
  EXPECT_EQ(codex.egress, contract::Vendor::openai);
  EXPECT_EQ(codex.model, contract::Config{}.codex_model);
  EXPECT_EQ(fields_of({"run", "--agent", "codex", "--egress", "openai", "--model", "m", "x"}, "x").model,
            "m");
  const auto command =
      fields_of({"run", "--agent", "command", "--egress", "openai", "--model", "m", "--", "true"}, "");
  EXPECT_EQ(command.egress, contract::Vendor::openai);
  EXPECT_EQ(command.model, "m");
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& prompt, Code code) {
  auto fields = request_fields(parsed<RunOptions>(arguments), {}, prompt);
  ASSERT_FALSE(fields);
  EXPECT_EQ(fields.error().code, code) << fields.error().line();
}

TEST(Request, ContradictionsAreSaid) {
  expect_refused({"run"}, "", Code::usage);
  expect_refused({"run", "--agent", "command"}, "", Code::usage);
  expect_refused({"run", "--egress", "none", "x"}, "x", Code::usage);
  expect_refused({"run", "--egress", "openai", "x"}, "x", Code::usage);
  expect_refused({"run", "--agent", "codex", "--egress", "anthropic", "x"}, "x", Code::usage);
  expect_refused({"run", "--backend", "docker", "x"}, "x", Code::unsupported_host);
  expect_refused({"run", "--deadline", "soon", "x"}, "x", Code::usage);
  expect_refused({"run", "--agent", "command", "--model", "m", "--", "true"}, "", Code::usage);
}

contract::Config with_destinations(const std::string& repository) {
  auto config = contract::decode_config(
      "[[destinations]]\nname = \"packages\"\nhost = \"packages.example\"\naddresses = [\"10.0.0.0/8\"]\n"
      "[[destinations]]\nname = \"other\"\nhost = \"other.example\"\nport = 8443\n"
      "[repositories.\"" +
          repository + "\"]\ndestinations = [\"packages\"]\n",
      "config.toml");
  if (!config) ADD_FAILURE() << config.error().line();
  return config ? *config : contract::Config{};
}

std::vector<std::string> opened(const RunOptions& options, const contract::Config& config,
                                const std::string& repository) {
  auto destinations = request_destinations(options, config, repository);
  if (!destinations) return {destinations.error().line()};
  std::vector<std::string> out;
  for (const contract::Destination& one : *destinations) {
    out.push_back(one.host + ":" + std::to_string(one.port) + (one.addresses.empty() ? "" : " ranged"));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Destinations, NoneUnlessTheUserSaysSo) {
  EXPECT_EQ(opened(parsed<RunOptions>({"run", "x"}), contract::Config{}, "/usr"), Texts{});
  EXPECT_EQ(opened(parsed<RunOptions>({"run", "x"}), with_destinations("/usr"), "/etc"), Texts{});
  EXPECT_EQ(opened(parsed<RunOptions>({"run", "x"}), with_destinations("/no/such"), "/no/such"), Texts{});
}

TEST(Destinations, TheSectionOfTheRepositoryOpensItsOwn) {
  EXPECT_EQ(opened(parsed<RunOptions>({"run", "x"}), with_destinations("/usr"), "/usr"),
            Texts{"packages.example:443 ranged"});
  EXPECT_EQ(opened(parsed<RunOptions>({"run", "x"}), with_destinations("/usr/../usr/"), "/usr"),
            Texts{"packages.example:443 ranged"});
}

TEST(Destinations, FlagsAddToItAndTakeWhatIsConfigured) {
  for (const char* verb : {"run", "plan", "ask", "review"}) {
    const auto options = parsed<RunOptions>({verb, "--allow-host", "new.example", "--allow-host",
                                             "OTHER.example:8443", "--allow-host=packages.example", "x"});
    EXPECT_EQ(options.prompt, "x");
    EXPECT_EQ(opened(options, with_destinations("/usr"), "/usr"),
              (Texts{"packages.example:443 ranged", "new.example:443", "other.example:8443"}));
    EXPECT_EQ(opened(options, with_destinations("/usr"), "/etc"),
              (Texts{"new.example:443", "other.example:8443", "packages.example:443 ranged"}));
  }
}

TEST(Destinations, AnAddressIsNotAHost) {
  for (const char* text : {"192.0.2.1", "[::1]:443", "2130706433", "https://a.example", "*.example", ""}) {
    RunOptions options;
    options.allowed = {text};
    auto refused = request_destinations(options, contract::Config{}, "/usr");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::usage);
    EXPECT_NE(refused.error().line().find("--allow-host"), std::string::npos) << refused.error().line();
  }
}

}  // namespace
}  // namespace cofferdam::cli
