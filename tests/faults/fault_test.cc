// Kills, at every step of an attempt and at random moments, of the supervisor and of each of its children.
// Each time: the account is closed exactly once and truly, the ledger's chain holds, what the agent left is
// kept, and nothing else of the attempt is left on the host.
#include <tuple>

#include "faults/fixture.h"

namespace cofferdam::test {
namespace {

struct Step {
  const char* point;
  bool settled;  // the agent's account was closed: the attempt is what it was
  bool work;     // and what it left must be there
};

void PrintTo(const Step& step, std::ostream* out) {
  *out << step.point;
}

class SupervisorDies : public Faults, public ::testing::WithParamInterface<std::tuple<User, Step>> {
 protected:
  User user() const override { return std::get<0>(GetParam()); }
};

TEST_P(SupervisorDies, TheAccountIsClosedByTheNextCommand) {
  const Step& step = std::get<1>(GetParam());
  const std::string untouched =
      world().fingerprint(world().repo(), {world().repo() + "/.git/objects", world().repo() + "/.git/refs"});
  arm(step.point);
  const RunOutcome killed =
      world().cofferdam(command("victim", "echo made > made.txt; echo beta >> src/a.txt"));
  ASSERT_TRUE(fired()) << killed.err;
  EXPECT_EQ(killed.status.signal, SIGKILL);
  disarm();
  const RunOutcome next = world().cofferdam({"list", "--json"});
  EXPECT_EQ(next.status.code, 0) << next.err;
  const std::string point = step.point;
  if (point == "lock-taken" || point == "before-admitted") {
    // Before the admission there is nothing to account for; behind it, within the event, the row is.
    auto ledger = open_ledger();
    ASSERT_TRUE(ledger);
    auto record = ledger->find("victim");
    if (record && !record->has_value()) {
      EXPECT_FALSE(exists(world().state() + "/attempts/victim"));
      return;
    }
  }
  const contract::ResultRecord result = expect_closed("victim");
  if (point != "closed" && point != "after-finished") {
    EXPECT_TRUE(result.recovery.has_value() || point == "before-finished") << "somebody else closed it";
  }
  EXPECT_EQ(result.outcome, step.settled ? Outcome::completed : Outcome::lost) << result.cause.detail;
  if (step.settled) {
    EXPECT_EQ(result.process.exit_code, 0);
    EXPECT_EQ(result.publication.state, "published") << result.publication.reason;
    EXPECT_EQ(world().git({"show", "cofferdam/victim:made.txt"}), "made");
    EXPECT_EQ(world().git({"rev-parse", "cofferdam/victim^"}), world().git({"rev-parse", "main"}));
  } else {
    EXPECT_EQ(result.cause.control, "supervisor");
    EXPECT_FALSE(result.change.ref.has_value());
  }
  if (step.work) {
    EXPECT_NE(diff("victim").find("+made"), std::string::npos) << "the work is kept";
  }
  EXPECT_EQ(untouched, world().fingerprint(world().repo(), {world().repo() + "/.git/objects",
                                                            world().repo() + "/.git/refs"}));
  expect_settled_for_good("victim");
  EXPECT_EQ(world().cofferdam(command("victim", "something else")).status.code, 3);
}

constexpr Step kSteps[] = {
    {"lock-taken", false, false},
    {"before-admitted", false, false},
    {"after-admitted", false, false},
    {"after-cloned", false, false},
    {"keeper-recorded", false, false},
    {"before-workspace-ready", false, false},
    {"after-workspace-ready", false, false},
    {"before-box-ready", false, false},
    {"after-box-ready", false, false},
    {"go", false, false},
    {"after-started", false, false},
    {"before-process-ended", false, true},
    {"after-process-ended", false, true},
    {"before-box-gone", false, true},
    {"after-box-gone", false, true},
    {"before-settled", false, true},
    {"after-settled", true, true},
    {"before-snapshot", true, true},
    {"after-snapshot", true, true},
    {"store-made", true, true},
    {"pack-adopted", true, true},
    {"before-committed", true, true},
    {"after-committed", true, true},
    {"before-publishing", true, true},
    {"after-publishing", true, true},
    {"objects-quarantined", true, true},
    {"objects-sent", true, true},
    {"ref-made", true, true},
    {"before-published", true, true},
    {"after-published", true, true},
    {"storage-released", true, true},
    {"before-finished", true, true},
    {"after-finished", true, true},
    {"closed", true, true},
};

std::string step_name(const ::testing::TestParamInfo<std::tuple<User, Step>>& info) {
  std::string name = user_name(std::get<0>(info.param)) + "_" + std::get<1>(info.param).point;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Steps, SupervisorDies,
                         ::testing::Combine(::testing::Values(User::rootless, User::root),
                                            ::testing::ValuesIn(kSteps)),
                         step_name);

// --- its children
// -------------------------------------------------------------------------------------------

struct PartDies {
  const char* point;  // POINT@PART
  Outcome outcome;
  bool vendor;  // with an agent, and so with a gateway
};

void PrintTo(const PartDies& part, std::ostream* out) {
  *out << part.point;
}

class PartFault : public Faults, public ::testing::WithParamInterface<std::tuple<User, PartDies>> {
 protected:
  User user() const override { return std::get<0>(GetParam()); }
};

TEST_P(PartFault, TheSupervisorSaysWhatBecameOfIt) {
  const PartDies& part = std::get<1>(GetParam());
  std::vector<std::string> args = command("victim", "echo made > made.txt; sleep 1");
  if (part.vendor) {
    use_standin(script_file("edit-and-run.json"));
    args.insert(args.begin() + 1, {"--config", world().config(), "--egress", "anthropic"});
  }
  arm(part.point);
  const RunOutcome outcome = world().cofferdam(args);
  ASSERT_TRUE(fired()) << outcome.err;
  disarm();
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, part.outcome)
      << outcome.result->cause.control << ": " << outcome.result->cause.detail;
  EXPECT_FALSE(outcome.result->recovery.has_value());
  expect_closed("victim");
  expect_settled_for_good("victim");
}

constexpr PartDies kParts[] = {
    // The storage lives as long as somebody holds its namespaces, and the supervisor does.
    {"keeper-recorded@keeper", Outcome::completed, false},
    {"after-workspace-ready@keeper", Outcome::completed, false},
    {"go@keeper", Outcome::completed, false},
    {"after-settled@keeper", Outcome::completed, false},
    {"after-box-ready@box", Outcome::setup_failed, false},
    {"after-started@box", Outcome::setup_failed, false},
    {"go@gateway", Outcome::failed, true},
    {"after-started@gateway", Outcome::failed, true},
    // It has handed its token out, and is asked again only when that one is used up.
    {"after-started@broker", Outcome::completed, true},
};

std::string part_name(const ::testing::TestParamInfo<std::tuple<User, PartDies>>& info) {
  std::string name = user_name(std::get<0>(info.param)) + "_" + std::get<1>(info.param).point;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '@'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Parts, PartFault,
                         ::testing::Combine(::testing::Values(User::rootless, User::root),
                                            ::testing::ValuesIn(kParts)),
                         part_name);

// --- recovery itself
// ----------------------------------------------------------------------------------------

class RecoveryFault : public Faults, public ::testing::WithParamInterface<User> {
 protected:
  User user() const override { return GetParam(); }

  // An attempt whose agent has left work and is still at it when the supervisor is killed.
  void orphan(const std::string& id) {
    Running running(world(), command(id, "echo made > made.txt; echo ready; sleep 600"));
    Running::wait_for(world().state() + "/attempts/" + id + "/stdout", "ready");
    running.child().signal(SIGKILL);
    ASSERT_TRUE(running.child().wait(std::chrono::seconds(30)));
  }
};

TEST_P(RecoveryFault, WorkOfARunningAgentIsKept) {  // B13, F12
  mutable_world().extra_env.push_back("COFFERDAM_FAILPOINT_DIR=" + notes_);
  orphan("victim");
  const RunOutcome recovered = world().cofferdam({"recover"});
  EXPECT_EQ(recovered.status.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("recovered victim: lost"), std::string::npos) << recovered.out;
  const contract::ResultRecord result = expect_closed("victim");
  EXPECT_EQ(result.outcome, Outcome::lost);
  EXPECT_TRUE(result.change.commit.has_value()) << result.publication.reason;
  EXPECT_NE(diff("victim").find("+made"), std::string::npos);
  expect_settled_for_good("victim");
}

// Killed at the checkpoint's own steps, and right behind it: what was committed stays, and comes first.
TEST_P(RecoveryFault, ACheckpointIsPartOfWhatIsRecovered) {
  for (const char* point : {"before-checkpointed", "after-checkpointed", "pack-adopted"}) {
    SCOPED_TRACE(point);
    const std::string id = std::string("victim-") + point;
    arm(point);
    Running running(world(), command(id, "echo made > made.txt; echo ready; sleep 600"));
    Running::wait_for(world().state() + "/attempts/" + id + "/stdout", "ready");
    EXPECT_NE(world().cofferdam({"checkpoint", id}).status.code, 0) << "nobody answers any more";
    ASSERT_TRUE(running.child().wait(std::chrono::seconds(90)));
    disarm();
    EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
    const contract::ResultRecord result = expect_closed(id);
    EXPECT_EQ(result.outcome, Outcome::lost);
    ASSERT_TRUE(result.change.commit.has_value()) << result.publication.reason;
    const bool recorded = std::string(point) == "after-checkpointed";
    ASSERT_EQ(result.change.commits.size(), 1U);
    EXPECT_EQ(result.change.commits[0].by, recorded ? "command" : "end");
    EXPECT_NE(diff(id).find("+made"), std::string::npos);
    expect_settled_for_good(id);
    EXPECT_EQ(::unlink((notes_ + "/fired").c_str()), 0) << "it was killed elsewhere";
  }
}

TEST_P(RecoveryFault, AFollowedLogEndsWhenTheSupervisorIsKilled) {
  Running running(world(), command("victim", "echo made > made.txt; echo ready; sleep 600"));
  Running::wait_for(world().state() + "/attempts/victim/stdout", "ready");
  Running log(world(), {"log", "--follow", "victim"});
  running.child().signal(SIGKILL);
  EXPECT_NE(log.finish().out.find("lost"), std::string::npos);
  expect_closed("victim");
}

TEST_P(RecoveryFault, RecoveriesThatRaceCloseItOnce) {
  orphan("victim");
  std::vector<Running> racing;
  for (int i = 0; i < 4; ++i) racing.emplace_back(world(), std::vector<std::string>{"recover", "--json"});
  int closed = 0;
  for (Running& one : racing) {
    const RunOutcome outcome = one.finish();
    EXPECT_EQ(outcome.status.code, 0) << outcome.err;
    if (outcome.out.find("\"attempt_id\":\"victim\"") != std::string::npos) ++closed;
  }
  EXPECT_EQ(closed, 1);
  expect_closed("victim");
}

TEST_P(RecoveryFault, ARecoveryThatIsKilledIsRecovered) {
  for (const char* point :
       {"after-recovered", "after-settled", "after-snapshot", "store-made", "after-committed",
        "recovery-brought-home", "recovery-cleaned", "before-finished", "closed-orphan"}) {
    SCOPED_TRACE(point);
    const std::string id = std::string("victim-") + point;
    orphan(id);
    ::unlink((notes_ + "/fired").c_str());
    arm(point);
    const RunOutcome killed = world().cofferdam({"recover"});
    EXPECT_TRUE(fired()) << killed.err;
    EXPECT_EQ(killed.status.signal, SIGKILL);
    disarm();
    EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
    const contract::ResultRecord result = expect_closed(id);
    EXPECT_EQ(result.outcome, Outcome::lost);
    EXPECT_NE(diff(id).find("+made"), std::string::npos) << "the work is kept";
  }
}

TEST_P(RecoveryFault, ALivingAttemptIsLeftAlone) {
  Running running(world(), command("alive", "echo ready; while [ ! -e go ]; do sleep 0.1; done; sleep 1"));
  Running::wait_for(world().state() + "/attempts/alive/stdout", "ready");
  const RunOutcome recovered = world().cofferdam({"recover"});
  EXPECT_EQ(recovered.out, "nothing to recover\n");
  EXPECT_EQ(world().cofferdam({"cancel", "alive"}).status.code, 0);
  const RunOutcome outcome = running.finish();
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::cancelled);
}

TEST_P(RecoveryFault, WithoutItsKeeperTheWorkIsLostAndSaysSo) {
  mutable_world().extra_env.push_back("COFFERDAM_FAILPOINT_DIR=" + notes_);
  orphan("victim");
  auto line = read_file(world().state() + "/attempts/victim/keeper", 256);
  ASSERT_TRUE(line);
  const auto keeper = process_from_line(*line);
  ASSERT_TRUE(keeper.has_value());
  auto process = open_process(*keeper);
  ASSERT_TRUE(process.has_value()) << "the control: the keeper has outlived its supervisor";
  ASSERT_EQ(::kill(keeper->pid, SIGKILL), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (open_process(*keeper).has_value() && std::chrono::steady_clock::now() < end) ::usleep(20'000);
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  const contract::ResultRecord result = expect_closed("victim");
  EXPECT_EQ(result.outcome, Outcome::lost);
  EXPECT_FALSE(result.change.commit.has_value());
  EXPECT_NE(result.publication.reason.find("its keeper has ended"), std::string::npos)
      << result.publication.reason;
  ASSERT_TRUE(result.storage.has_value()) << "and it was said beforehand what the storage survives";
  EXPECT_EQ(result.storage->kind, GetParam() == User::root ? "image" : "tmpfs");
}

TEST_P(RecoveryFault, TheStorageIsKeptNoLongerThanConfigured) {
  world().write(world().home() + "/.config/cofferdam/config.toml", "[recovery]\nkeep_storage = \"1s\"\n");
  orphan("victim");
  auto line = read_file(world().state() + "/attempts/victim/keeper", 256);
  ASSERT_TRUE(line);
  const auto keeper = process_from_line(*line);
  ASSERT_TRUE(keeper.has_value());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (open_process(*keeper).has_value() && std::chrono::steady_clock::now() < end) ::usleep(20'000);
  EXPECT_FALSE(open_process(*keeper).has_value());
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  EXPECT_FALSE(expect_closed("victim").change.commit.has_value());
}

TEST_P(RecoveryFault, TheSameInvocationAgainIsTheFirstOnesResult) {
  const RunOutcome first = world().cofferdam(command("same", "echo made > made.txt"));
  ASSERT_TRUE(first.result.has_value());
  const RunOutcome again = world().cofferdam(command("same", "echo made > made.txt"));
  EXPECT_EQ(again.status.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  const RunOutcome other = world().cofferdam(command("same", "echo other > made.txt"));
  EXPECT_EQ(other.status.code, 3);
  EXPECT_NE(other.err.find("belongs to a different invocation"), std::string::npos) << other.err;
}

TEST_P(RecoveryFault, TheSameInvocationJoinsARunningAttempt) {
  const std::string script = "echo ready; sleep 600";
  Running first(world(), command("same", script));
  Running::wait_for(world().state() + "/attempts/same/stdout", "ready");
  Running second(world(), command("same", script));
  EXPECT_EQ(world().cofferdam({"cancel", "same", "--reason", "both end"}).status.code, 0);
  const RunOutcome one = first.finish();
  const RunOutcome two = second.finish();
  EXPECT_EQ(one.status.code, 5) << one.err;
  EXPECT_EQ(two.status.code, 5) << two.err;
  EXPECT_EQ(one.out, two.out);
}

TEST_P(RecoveryFault, TheSameInvocationRecoversAnOrphanAndHasItsResult) {
  orphan("victim");
  const RunOutcome again =
      world().cofferdam(command("victim", "echo made > made.txt; echo ready; sleep 600"));
  EXPECT_EQ(again.status.code, 6) << again.err;
  ASSERT_TRUE(again.result.has_value());
  EXPECT_EQ(again.result->outcome, Outcome::lost);
  EXPECT_TRUE(again.result->change.commit.has_value());
  expect_closed("victim");
}

// Between the refusal and the conclusion from it: the account still says why there is no branch.
TEST_P(RecoveryFault, AStaleContextStaysStale) {
  ASSERT_EQ(world().cofferdam({"context", "set", "notes", "--from", "0", "--to", "1"}).status.code, 0);
  const std::string head = world().git({"rev-parse", "main"});
  const auto invocation = [&](const std::string& id, const std::string& script) {
    const contract::Json json = {
        {"schema", "cofferdam.invocation/1"},
        {"attempt_id", id},
        {"phase", "implementation"},
        {"agent", {{"name", "command"}, {"argv", {"/bin/sh", "-c", script}}}},
        {"clone", {{"repository", world().repo()}, {"head", head}}},
        {"prompt", ""},
        {"context", {{"name", "notes"}, {"version", 1}, {"sha256", std::string(64, 'a')}}},
        {"deadlines", {{"total_ms", 600000}}}};
    return contract::canonical(json);
  };
  arm("after-not-published");
  // Its context moves on while it runs.
  auto in = make_pipe();
  ASSERT_TRUE(in);
  SpawnOptions options = world().cofferdam_options({"exec", "-"});
  options.fds = {{in->read.get(), 0}};
  auto child = spawn(options);
  ASSERT_TRUE(child);
  ASSERT_TRUE(write_all(in->write.get(), invocation("victim", "echo made > made.txt; echo ready; sleep 3")));
  in->write.reset();
  Running::wait_for(world().state() + "/attempts/victim/stdout", "ready");
  EXPECT_EQ(world().cofferdam({"context", "set", "notes", "--from", "1", "--to", "2"}).status.code, 0);
  auto status = child->wait(std::chrono::seconds(120));
  ASSERT_TRUE(status);
  ASSERT_TRUE(fired());
  disarm();
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  const contract::ResultRecord result = expect_closed("victim");
  EXPECT_EQ(result.outcome, Outcome::refused);
  EXPECT_EQ(result.cause.control, "stale-context");
  EXPECT_EQ(result.publication.state, "stale");
  EXPECT_NE(diff("victim").find("+made"), std::string::npos) << "the work is kept";
}

// The repository has gone when the claim stands: the account is closed, the claim is given back, and a later
// recovery makes the branch.
TEST_P(RecoveryFault, AClaimThatCannotBeGoneOnWithIsGivenBack) {
  arm("after-publishing");
  EXPECT_EQ(world().cofferdam(command("victim", "echo made > made.txt")).status.signal, SIGKILL);
  ASSERT_TRUE(fired());
  disarm();
  const std::string away = world().root() + "/away";
  ASSERT_EQ(::rename(world().repo().c_str(), away.c_str()), 0);
  ASSERT_TRUE(make_new_dir(world().repo(), 0755));
  const RunOutcome first = world().cofferdam({"list"});
  ASSERT_EQ(::rmdir(world().repo().c_str()), 0);
  ASSERT_EQ(::rename(away.c_str(), world().repo().c_str()), 0);
  contract::ResultRecord result = expect_closed("victim");
  EXPECT_EQ(result.outcome, Outcome::failed) << first.err;
  EXPECT_EQ(result.cause.control, "publication");
  const RunOutcome later = world().cofferdam({"recover"});
  EXPECT_EQ(later.status.code, 0) << later.err;
  EXPECT_NE(later.out.find("published refs/heads/cofferdam/victim"), std::string::npos) << later.out;
  EXPECT_EQ(world().git({"show", "cofferdam/victim:made.txt"}), "made");
  EXPECT_EQ(world().cofferdam({"recover"}).out, "nothing to recover\n");
  EXPECT_NE(world().cofferdam({"show", "victim"}).out.find("(later, "), std::string::npos);
}

TEST_P(RecoveryFault, TheBranchIsTheOneThatWasClaimed) {
  world().write(world().config(), "[branch]\nprefix = \"other\"\n");
  std::vector<std::string> args = command("victim", "echo made > made.txt");
  args.insert(args.begin() + 1, {"--config", world().config()});
  arm("ref-made");
  EXPECT_EQ(world().cofferdam(args).status.signal, SIGKILL);
  ASSERT_TRUE(fired());
  disarm();
  (void)world().cofferdam({"recover"});
  EXPECT_EQ(expect_closed("victim").change.ref, "refs/heads/other/victim");
  EXPECT_EQ(world().git({"for-each-ref", "--format=%(refname)", "refs/heads/cofferdam"}), "");
}

TEST_P(RecoveryFault, WorkThatTheLedgerDoesNotKnowIsLeftAlone) {
  orphan("victim");
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  world().write(world().state() + "/attempts/victim/lock", "");
  for (const char* name : {"/ledger.db", "/ledger.db-wal", "/ledger.db-shm"})
    ::unlink((world().state() + name).c_str());
  EXPECT_EQ(world().cofferdam({"context", "list"}).status.code, 0);
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  EXPECT_TRUE(exists(world().state() + "/attempts/victim/store.git"));
}

COFFERDAM_FOR_BOTH_USERS(RecoveryFault);

// --- random moments
// -----------------------------------------------------------------------------------------

}  // namespace
}  // namespace cofferdam::test
