#include "e2e/fixture.h"

#include "base/file.h"
#include "base/text.h"

namespace cofferdam::test {

void EndToEndWorld::SetUp() {
  if (user() == User::root && !running_as_root()) {
    skip_or_fail("root", "the tests do not run as root");
    return;
  }
  auto world = World::create(user());
  ASSERT_TRUE(world) << world.error().line();
  world_.emplace(std::move(*world));
  world_->commit({{"README.md", "# Sample\n\nHello\n"}, {"src/a.txt", "alpha\n"}}, "first");
  auto mounts = read_file("/proc/self/mountinfo", 1U << 20U);
  ASSERT_TRUE(mounts);
  mounts_before_ = *mounts;
}

void EndToEndWorld::TearDown() {
  standin_.reset();  // it names the test's folder too
  if (world_.has_value() && !IsSkipped()) expect_clean();
}

void EndToEndWorld::expect_clean() const {
  EXPECT_TRUE(processes_with(world_->root()).empty())
      << "a process with the test's folder in its command line is left";
  // A keeper that outlived its supervisor has nothing in its command line: its record is looked for.
  auto attempts = list_dir(world_->state() + "/attempts");
  for (const std::string& id : attempts ? *attempts : std::vector<std::string>{}) {
    EXPECT_FALSE(exists(world_->state() + "/attempts/" + id + "/keeper"))
        << id << " was left without a recovery";
  }
  auto mounts = read_file("/proc/self/mountinfo", 1U << 20U);
  ASSERT_TRUE(mounts);
  EXPECT_EQ(*mounts, mounts_before_) << "mounts are left behind";
}

void EndToEndWorld::use_standin(const std::string& script, const char* key, const std::string& more_config) {
  auto standin = Standin::start(world_->root() + "/standin", script, key);
  ASSERT_TRUE(standin) << standin.error().line();
  standin_.emplace(std::move(*standin));
  const std::string place = place_of(standin_->url());
  world_->write(world_->config(),
                "[vendors.openai]\n" + place + "[vendors.anthropic]\n" + place + more_config);
  if (key == std::string_view(kTestKey)) {
    world_->extra_env = {std::string("ANTHROPIC_API_KEY=") + kTestKey,
                         std::string("OPENAI_API_KEY=") + kTestKey};
  }
}

// What a vendor's table has to say to be played by the stand-in.
std::string EndToEndWorld::place_of(const std::string& upstream) const {
  return "upstream = \"" + upstream + "\"\nca_bundle = \"" + standin_->ca_file() + "\"\n";
}

void EndToEndWorld::write_config(const std::string& upstream, const std::string& more) const {
  const std::string place = place_of(upstream) + more;
  world_->write(world_->config(), "[vendors.anthropic]\n" + place + "[vendors.openai]\n" + place);
}

std::string EndToEndWorld::script_file(const std::string& name) {
  auto text = read_file(std::string(COFFERDAM_SOURCE_DIR) + "/tests/standin/scripts/" + name, 1U << 20U);
  return text ? *text : "";
}

bool EndToEndWorld::need_agent(const std::string& name) {
  const std::string package =
      name == "codex" ? "@openai/codex-linux-x64" : "@anthropic-ai/claude-code-linux-x64";
  const std::string folder = installed_agents();
  if (!folder.empty() && is_directory(folder + "/node_modules/" + package)) return true;
  skip_or_fail(name, package + " is not installed; run npm ci in agents/");
  return false;
}

std::vector<contract::Json> EndToEndWorld::asked(const std::string& target) const {
  std::vector<contract::Json> found;
  for (const std::string& line : standin_->requests()) {
    auto json = contract::parse_json_lenient(line, 64U << 20U, 256);
    if (json && starts_with(json->value("target", ""), target)) found.push_back(*json);
  }
  return found;
}

RunOutcome EndToEndWorld::run_script(const std::string& script, const std::vector<std::string>& more) {
  std::vector<std::string> args = {"run", "--json", "--agent", "command"};
  args.insert(args.end(), more.begin(), more.end());
  for (const char* part : {"--", "/bin/sh", "-c"}) args.emplace_back(part);
  args.push_back(script);
  RunOutcome outcome = world_->cofferdam(args);
  EXPECT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
  if (!outcome.result.has_value()) outcome.result.emplace();
  return outcome;
}

std::string EndToEndWorld::printed(const RunOutcome& outcome) const {
  auto text = read_file(world().state() + "/attempts/" + outcome.result->attempt_id + "/stdout", 1U << 20U);
  return text ? *text : "no output file";
}

Captured EndToEndWorld::outside(const std::string& script) const {
  return world_->as_user({"/bin/sh", "-c", script});
}

}  // namespace cofferdam::test
