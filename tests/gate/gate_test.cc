// The whole gate on this kernel, rootless and as root.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include "base/text.h"
#include "contract/json.h"
#include "gate/gate.h"
#include "init/plan.h"
#include "support/world.h"

namespace cofferdam::test {
namespace {

using Names = std::set<std::string>;
const std::vector<std::string> kVerdicts = {"held", "BROKEN", "unproven", "not applicable"};

struct Seen {
  std::string id;
  std::string layer;
  std::string control_verdict;
  std::string verdict;
};

struct SeenReport {
  bool passed = false;
  std::string conclusion;
  std::vector<Seen> rows;
  std::size_t count(const std::string& verdict) const {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const Seen& row) { return row.verdict == verdict; }));
  }
  Names layers(const std::string& verdict) const {
    Names found;
    for (const Seen& row : rows) {
      if (row.verdict == verdict) found.insert(row.layer);
    }
    return found;
  }
};

// Every member, each of its kind, and nothing else.
Result<SeenReport> read_report(const std::string& text) {
  TRY(const contract::Json json, contract::parse_json(trim(text), 4U << 20U));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  SeenReport report;
  report.passed = in.boolean("passed");
  report.conclusion = in.text("conclusion", {1, 65536});
  std::vector<std::uint64_t> counts;
  for (const char* name : {"held", "broken", "unproven", "not_applicable"}) {
    counts.push_back(in.integer(name, 0, 100'000));
  }
  (void)in.integer("boxes", 1, 1000);
  for (contract::ObjectReader& row : in.objects("rows", 1, 100'000)) {
    Seen seen;
    seen.id = row.text("id", {1, 200});
    (void)row.text("attack", {1, 2048});
    (void)row.text("control", {0, 200});
    (void)row.text("classes", {0, 200});
    seen.layer = row.text("layer", {1, 200});
    seen.control_verdict = row.text("control_verdict", {1, 2048});
    seen.verdict = kVerdicts[row.choice("verdict", kVerdicts)];
    (void)row.text("detail", {1, 2048});
    row.finish();
    report.rows.push_back(std::move(seen));
  }
  in.finish();
  if (fault.failed()) return fault.error();
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) EXPECT_EQ(counts[i], report.count(kVerdicts[i]));
  return report;
}

class Gate : public ::testing::TestWithParam<User> {
 protected:
  void SetUp() override {
    if (GetParam() == User::root && !running_as_root())
      return skip_or_fail("root", "the tests do not run as root");
    auto world = World::create(GetParam());
    ASSERT_TRUE(world) << world.error().line();
    world_.emplace(std::move(*world));
    const Captured able = world_->as_user({"/usr/bin/unshare", "--user", "--map-root-user", "/bin/true"});
    if (!able.status.success()) {
      world_.reset();
      skip_or_fail("userns", able.err);
    }
  }
  bool ready() const { return world_.has_value(); }

  // Breaks one layer in every box.
  SeenReport broken(const std::string& layer) {
    world_->program = "cofferdam-faults";
    world_->extra_env = {"COFFERDAM_FAILPOINT=gate-without=" + layer};
    const RunOutcome outcome = world_->cofferdam({"gate", "--json"});
    EXPECT_EQ(outcome.status.code, 1) << layer << ": " << outcome.err;
    auto report = read_report(outcome.out);
    EXPECT_TRUE(report) << layer << ": " << report.error().line();
    return report ? *report : SeenReport{};
  }

  std::optional<World> world_;
};

struct HostState {
  std::string core_pattern;
  std::string host_name;
  std::vector<std::string> mounts;  // of the gate's
  bool operator==(const HostState&) const = default;
};

std::ostream& operator<<(std::ostream& out, const HostState& state) {
  return out << state.core_pattern << state.host_name << join(state.mounts, "\n");
}

HostState read_host() {
  HostState state;
  state.core_pattern = read_file("/proc/sys/kernel/core_pattern", 4096).value();
  state.host_name = read_file("/proc/sys/kernel/hostname", 4096).value();
  for (std::string& line : split(read_file("/proc/self/mountinfo", 8U << 20U).value(), '\n')) {
    if (line.find("cofferdam-gate-") != std::string::npos) state.mounts.push_back(std::move(line));
  }
  return state;
}

// Whose parents have ended become our children.
bool nobody_is_left() {
  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

TEST_P(Gate, HoldsAndLeavesTheHostAsItWas) {
  if (!ready()) return;
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const HostState before = read_host();
  const RunOutcome outcome = world_->cofferdam({"gate", "--json"});
  EXPECT_TRUE(nobody_is_left());
  EXPECT_EQ(read_host(), before);
  EXPECT_EQ(outcome.err, "");
  auto report = read_report(outcome.out);
  ASSERT_TRUE(report) << report.error().line() << outcome.out.substr(0, 2000);
  EXPECT_EQ(outcome.status.code, 0) << report->conclusion;
  EXPECT_TRUE(report->passed) << report->conclusion;
  EXPECT_GT(report->count("held"), 200U);
  for (const Seen& row : report->rows) {
    if (row.verdict != "held") continue;
    EXPECT_EQ(row.control_verdict, row.layer == "-" ? "-" : "shown") << row.id;
  }
  // Nothing in the state folder: the gate is no attempt.
  EXPECT_EQ(list_dir(world_->state()).value().size(), 0U);
}

TEST_P(Gate, OneAttackAndItsRowsAsText) {
  if (!ready()) return;
  const RunOutcome outcome = world_->cofferdam({"gate", "--only", "mount-tmpfs"});
  EXPECT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  for (const char* part :
       {"mount-tmpfs ", "mount-tmpfs/seccomp ", "mount-tmpfs/capabilities ", "mount-tmpfs/landlock ",
        "\nevery attack is stopped, by the layer that claims to: 4 held, 0 not applicable, 5 boxes\n"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
  const RunOutcome none = world_->cofferdam({"gate", "--only", "nothing-of-the-kind"});
  EXPECT_EQ(none.status.code, 2);
  EXPECT_NE(none.err.find("`cofferdam gate --list` shows them"), std::string::npos) << none.err;
  const RunOutcome list = world_->cofferdam({"gate", "--list"});
  EXPECT_EQ(list.status.code, 0);
  EXPECT_NE(list.out.find("mount-tmpfs/seccomp"), std::string::npos);
}

// A caller whose groups open files of the host: they reach nothing from a box.
TEST_P(Gate, HoldsForACallerWithGroups) {
  if (!ready()) return;
  if (!running_as_root()) return skip_or_fail("root", "groups are root's to give");
  SpawnOptions options = world_->cofferdam_options({"gate", "--json"});
  if (options.run_as.has_value()) {
    const std::string program = std::exchange(options.program, "/usr/bin/setpriv");
    const std::string id = std::to_string(options.run_as->uid);
    std::vector<std::string> argv = {"setpriv", "--reuid",  id,         "--regid",
                                     id,        "--groups", "12399,27", program};
    argv.insert(argv.end(), options.argv.begin() + 1, options.argv.end());
    options.argv = std::move(argv);
    options.run_as.reset();
  }
  auto captured = run_capture(options, "", {});
  ASSERT_TRUE(captured) << captured.error().line();
  auto report = read_report(captured->out);
  ASSERT_TRUE(report) << captured->err;
  EXPECT_TRUE(report->passed) << report->conclusion;
}

Names all_layers() {
  Names layers(std::begin(plan::kLayerNames), std::end(plan::kLayerNames));
  layers.insert({gate::kStorageBound});
  return layers;
}

// What else a layer's absence is found by: the box's own probe of the id map wants the usual id inside, too;
// a root that can be written is one for Landlock's rules as well, which no process without no_new_privs may
// enter.
Names expected_with(const std::string& layer) {
  if (layer == "read-only-root" || layer == "no-new-privs") return {layer, "landlock"};
  if (layer == "identity") return {"identity", gate::kHostRootUnmapped};
  return {layer};
}

TEST_P(Gate, ALayerThatIsMissingIsNamedAndNoOther) {
  if (!ready()) return;
  const Names few = {"seccomp", "capabilities", "own-network", "closed-fds", "storage-bound"};
  for (const std::string& layer : GetParam() == User::root ? all_layers() : few) {
    SCOPED_TRACE(layer);
    const SeenReport report = broken(layer);
    EXPECT_FALSE(report.passed);
    EXPECT_EQ(report.layers("BROKEN"), expected_with(layer)) << report.conclusion;
  }
  if (GetParam() == User::rootless) return;  // an ordinary user cannot make the last one
  // It lacks more than one thing: its user is the host's root.
  EXPECT_EQ(broken(gate::kHostRootUnmapped).layers("BROKEN").count(gate::kHostRootUnmapped), 1U);
}

INSTANTIATE_TEST_SUITE_P(Users, Gate, ::testing::Values(User::rootless, User::root),
                         [](const auto& param) { return user_name(param.param); });

}  // namespace
}  // namespace cofferdam::test
