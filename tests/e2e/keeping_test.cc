// What is kept, how long, and how it is seen: log, verify, discard, prune, df, and the vault as a cache.
#include <signal.h>
#include <unistd.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include "e2e/fixture.h"
#include "e2e/running.h"

namespace cofferdam::test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Keeping : public EndToEnd {
 protected:
  std::string folder_of(const std::string& id) const { return world().state() + "/attempts/" + id; }
  contract::Json json_of(const std::vector<std::string>& args) const {
    const RunOutcome outcome = world().cofferdam(args);
    EXPECT_EQ(outcome.status.code, 0) << outcome.err;
    auto json = contract::parse_json(outcome.out, 16U << 20U);
    EXPECT_TRUE(json) << outcome.out;
    return json ? *json : contract::Json();
  }
  // The number of base packs in the vault.
  std::size_t packs() const { return json_of({"df", "--json"})["vault"]["bases"].size(); }
  void edit_ledger(const std::string& sql) const {
    SQLite::Database db(world().state() + "/ledger.db", SQLite::OPEN_READWRITE, 10'000);
    std::vector<std::string> triggers;
    SQLite::Statement query(db, "SELECT name FROM sqlite_master WHERE type = 'trigger'");
    while (query.executeStep()) triggers.push_back(query.getColumn(0).getString());
    for (const std::string& name : triggers) db.exec("DROP TRIGGER " + name);
    db.exec(sql);
  }
  RunOutcome run_kept(const std::string& id) {
    return run_script("echo half > half.txt; exit 3", {"--attempt-id", id});
  }
};

TEST_P(Keeping, LogHasTheEventsAsExecPrintedThem) {
  const std::string head = world().git({"rev-parse", "HEAD"});
  const std::string invocation =
      R"({"schema":"cofferdam.invocation/1","attempt_id":"logged","phase":"question","agent":{"name":"command",)"
      R"("argv":["/bin/sh","-c","printf 'a\\033[2Jb\\n'"]},"clone":{"repository":")" +
      world().repo() + R"(","head":")" + head +
      R"("},"prompt":"","deadlines":{"total_ms":60000,"grace_ms":1000}})";
  const RunOutcome exec = world().cofferdam({"exec", "-"}, invocation);
  ASSERT_EQ(exec.status.code, 0) << exec.err;
  const std::string events = exec.out.substr(0, exec.out.rfind('\n', exec.out.size() - 2) + 1);
  EXPECT_EQ(world().cofferdam({"log", "--json", "logged"}).out, events);
  EXPECT_EQ(world().cofferdam({"log", "--json", "--follow", "logged"}).out, events);
  const RunOutcome text = world().cofferdam({"log", "logged"});
  EXPECT_EQ(text.status.code, 0);
  EXPECT_TRUE(has(text.out, "  admitted  ")) << text.out;
  EXPECT_TRUE(has(text.out, "completed  logged\n")) << text.out;
  EXPECT_FALSE(has(text.out, "\033"));
  EXPECT_EQ(world().cofferdam({"log", "nobody"}).status.code, 2);
}

TEST_P(Keeping, LogFollowsARunningAttemptOfAnotherProcess) {
  Running attempt(
      world(), {"run", "--json", "--repo", world().repo(), "--attempt-id", "followed", "--agent", "command",
                "--", "/bin/sh", "-c", "echo first; until test -e /workspace/go || sleep 600; do :; done"});
  Running::wait_for(folder_of("followed") + "/stdout", "first");
  Running follower(world(), {"log", "--follow", "followed"});
  Running interrupted(world(), {"log", "--follow", "followed"});
  ::usleep(300'000);  // they may all be reading; what is tested does not hang on it
  EXPECT_FALSE(has(world().cofferdam({"log", "followed"}).out, "finished"));
  EXPECT_EQ(world().cofferdam({"discard", "followed"}).status.code, 3) << "it is running";
  EXPECT_EQ(world().cofferdam({"verify", "followed"}).status.code, 0) << "as far as it has come";
  interrupted.child().signal(SIGINT);
  const RunOutcome ended = interrupted.finish();
  EXPECT_EQ(ended.err, "") << "quietly";
  EXPECT_TRUE(has(ended.out, "admitted"));
  EXPECT_FALSE(has(ended.out, "finished"));
  ASSERT_EQ(world().cofferdam({"cancel", "followed"}).status.code, 0);
  const RunOutcome followed = follower.finish();
  EXPECT_EQ(followed.status.code, 0) << followed.err;
  EXPECT_TRUE(has(followed.out, "cancel-requested")) << followed.out;
  EXPECT_TRUE(has(followed.out, "cancelled  followed\n")) << followed.out;
  EXPECT_EQ(attempt.finish().status.code, 5);
}

TEST_P(Keeping, AClosedPipeEndsTheLog) {
  Running attempt(world(), {"run", "--json", "--repo", world().repo(), "--attempt-id", "piped", "--agent",
                            "command", "--", "/bin/sh", "-c", "echo first; sleep 600"});
  Running::wait_for(folder_of("piped") + "/stdout", "first");
  // head(1) ends after one line; the log must not wait for the attempt.
  const Captured piped = outside("COFFERDAM_STATE_DIR=" + world().state() + " timeout 60 sh -c '" +
                                 world().programs() + "/cofferdam log --follow piped | head -n 1'; echo $?");
  EXPECT_TRUE(has(piped.out, "admitted")) << piped.out << piped.err;
  EXPECT_TRUE(has(piped.out, "\n0\n")) << piped.out << piped.err;
  EXPECT_EQ(piped.err, "");
  ASSERT_EQ(world().cofferdam({"cancel", "piped"}).status.code, 0);
  EXPECT_EQ(attempt.finish().status.code, 5);
}

TEST_P(Keeping, VerifySeesWhatWasDoneToTheFile) {
  const RunOutcome first = run_script("echo x > x.txt", {"--attempt-id", "first"});
  const RunOutcome second = run_script("echo y > y.txt", {"--attempt-id", "second"});
  ASSERT_EQ(first.status.code, 0) << first.err;
  ASSERT_EQ(second.status.code, 0) << second.err;
  EXPECT_EQ(world().cofferdam({"verify"}).status.code, 0);
  EXPECT_EQ(world().cofferdam({"verify", "--result", "-"}, first.out).status.code, 0);
  EXPECT_EQ(world().cofferdam({"verify", "second", "--result", "-"}, first.out).status.code, 2);
  EXPECT_EQ(world().cofferdam({"verify", "nobody"}).status.code, 2);

  edit_ledger("UPDATE events SET at = at + 1 WHERE attempt_id = 'first' AND seq = 4");
  const RunOutcome edited = world().cofferdam({"verify"});
  EXPECT_EQ(edited.status.code, 1);
  EXPECT_TRUE(has(edited.out, "not intact  first  event 4")) << edited.out;
  EXPECT_EQ(world().cofferdam({"verify", "second"}).status.code, 0) << "the control";
  const RunOutcome json = world().cofferdam({"verify", "first", "--json"});
  EXPECT_EQ(json.status.code, 1);
  EXPECT_TRUE(has(json.out, "\"event\":4")) << json.out;

  edit_ledger("DELETE FROM events WHERE attempt_id = 'second'; DELETE FROM attempts WHERE id = 'second'");
  const RunOutcome removed = world().cofferdam({"verify", "--result", "-"}, second.out);
  EXPECT_EQ(removed.status.code, 1);
  EXPECT_TRUE(has(removed.out, "it was removed")) << removed.out;
  ASSERT_EQ(::unlink((world().state() + "/ledger.db").c_str()), 0);
  EXPECT_EQ(world().cofferdam({"verify", "--result", "-"}, first.out).status.code, 1) << "the whole file";
}

TEST_P(Keeping, DiscardRemovesWhatWasHandedOff) {
  ASSERT_EQ(run_script("echo x > x.txt", {"--attempt-id", "one"}).status.code, 0);
  ASSERT_EQ(run_script("echo y > y.txt", {"--attempt-id", "two"}).status.code, 0);
  const std::string beside = world().fingerprint(folder_of("two"));
  const contract::Json done = json_of({"discard", "--json", "one"});
  EXPECT_EQ(done["removed"], true);
  EXPECT_GT(done["bytes"], 0);
  EXPECT_FALSE(exists(folder_of("one")));
  EXPECT_EQ(world().fingerprint(folder_of("two")), beside);
  const RunOutcome diff = world().cofferdam({"diff", "one"});
  EXPECT_EQ(diff.status.code, 2);
  EXPECT_TRUE(has(diff.err, "was discarded")) << diff.err;
  EXPECT_TRUE(has(diff.err, "refs/heads/cofferdam/one")) << diff.err;
  EXPECT_EQ(world().cofferdam({"diff", "two"}).status.code, 0) << "the control";
  EXPECT_EQ(json_of({"discard", "--json", "one"})["removed"], false) << "again";
  EXPECT_EQ(world().cofferdam({"show", "one"}).status.code, 0) << "the record stays";
  EXPECT_EQ(world().cofferdam({"verify"}).status.code, 0);
  EXPECT_EQ(world().cofferdam({"discard", "nobody"}).status.code, 2);
}

TEST_P(Keeping, DiscardKeepsWorkThatNobodyHas) {
  ASSERT_EQ(run_kept("half").status.code, 1);
  const RunOutcome refused = world().cofferdam({"discard", "half"});
  EXPECT_EQ(refused.status.code, 3);
  EXPECT_TRUE(has(refused.err, "never handed off")) << refused.err;
  EXPECT_TRUE(has(world().cofferdam({"diff", "half"}).out, "+half"));
  EXPECT_EQ(world().cofferdam({"discard", "--force", "half"}).status.code, 0);
  EXPECT_FALSE(exists(folder_of("half")));
  EXPECT_TRUE(has(world().cofferdam({"diff", "half"}).err, "nobody has it any more"));
}

TEST_P(Keeping, ALinkInThePlaceOfAFolderIsNotFollowed) {
  ASSERT_EQ(run_script("echo x > x.txt", {"--attempt-id", "one"}).status.code, 0);
  ASSERT_EQ(run_script("echo x > x.txt", {"--attempt-id", "two"}).status.code, 0);
  world().as_user({"/bin/mkdir", world().home() + "/precious"});
  world().write(world().home() + "/precious/file", "mine\n");
  world().as_user({"/bin/mv", folder_of("one"), world().home() + "/moved"});
  world().as_user({"/bin/ln", "-s", world().home() + "/precious", folder_of("one")});
  world().as_user({"/bin/ln", "-s", world().home() + "/precious", folder_of("two") + "/link"});
  world().as_user({"/bin/ln", "-s", world().home() + "/precious", folder_of("unknown")});
  EXPECT_EQ(world().cofferdam({"discard", "--force", "one"}).status.code, 3);
  EXPECT_EQ(world().cofferdam({"discard", "--force", "two"}).status.code, 0) << "the control";
  EXPECT_EQ(world().cofferdam({"discard", "--force", "unknown"}).status.code, 2) << "not in the ledger";
  const contract::Json pruned = json_of({"prune", "--older-than", "0s", "--force", "--json"});
  EXPECT_EQ(pruned["pruned"], contract::Json::array({"two"}));
  EXPECT_EQ(pruned["kept"][0]["attempt_id"], "one");
  EXPECT_FALSE(exists(folder_of("two")));
  EXPECT_TRUE(exists(folder_of("one")));
  EXPECT_TRUE(exists(folder_of("unknown")));
  EXPECT_TRUE(exists(world().home() + "/precious/file"));
}

TEST_P(Keeping, PruneKeepsWhatIsYoungNewestOrNobodyElses) {
  const RunOutcome done = run_script("echo x > x.txt", {"--attempt-id", "done"});
  ASSERT_EQ(done.status.code, 0) << done.err;
  ASSERT_EQ(run_kept("half").status.code, 1);
  ASSERT_EQ(run_script("echo z > z.txt", {"--attempt-id", "newest"}).status.code, 0);
  EXPECT_TRUE(json_of({"prune", "--json"})["pruned"].empty()) << "30 days are the default";
  const contract::Json planned =
      json_of({"prune", "--older-than", "0s", "--keep", "1", "--dry-run", "--json"});
  EXPECT_EQ(planned["pruned"], contract::Json::array({"done"}));
  EXPECT_TRUE(exists(folder_of("done"))) << "a dry run";
  const RunOutcome pruned = world().cofferdam({"prune", "--older-than", "0s", "--keep", "1"});
  EXPECT_EQ(pruned.status.code, 0) << pruned.err;
  EXPECT_TRUE(has(pruned.out, "pruned  done\n")) << pruned.out;
  EXPECT_TRUE(has(pruned.out, "kept  half  its work (commit ")) << pruned.out;
  EXPECT_FALSE(exists(folder_of("done")));
  EXPECT_TRUE(exists(folder_of("half")));
  EXPECT_TRUE(exists(folder_of("newest")));

  EXPECT_TRUE(has(world().cofferdam({"show", "done"}).out, "outcome    completed"));
  EXPECT_EQ(json_of({"show", "--json", "done"})["chain_head"], done.result->chain_head);
  for (const char* verb : {"diff", "log", "cancel"}) {
    const RunOutcome gone = world().cofferdam({verb, "done"});
    EXPECT_EQ(gone.status.code, 2) << verb;
    EXPECT_TRUE(has(gone.err, "was pruned on")) << gone.err;
  }
  EXPECT_EQ(world().cofferdam({"verify"}).status.code, 0);
  EXPECT_EQ(world().cofferdam({"verify", "--result", "-"}, done.out).status.code, 0) << "the tombstone";
  edit_ledger("UPDATE tombstones SET outcome = 'failed'");
  EXPECT_EQ(world().cofferdam({"verify", "--result", "-"}, done.out).status.code, 1);
  const RunOutcome again =
      world().cofferdam({"run", "--agent", "command", "--attempt-id", "done", "--", "/bin/true"});
  EXPECT_EQ(again.status.code, 3) << "its id stays used: " << again.err;

  EXPECT_EQ(json_of({"prune", "--older-than", "0s", "--force", "--json"})["pruned"].size(), 2U);
  EXPECT_FALSE(exists(folder_of("half")));
}

TEST_P(Keeping, DfCountsWhatIsThere) {
  EXPECT_EQ(json_of({"df", "--json"})["total_bytes"], 0);
  ASSERT_EQ(run_script("echo x > x.txt", {"--attempt-id", "one"}).status.code, 0);
  const contract::Json usage = json_of({"df", "--json"});
  EXPECT_GT(usage["ledger"]["bytes"], 0);
  ASSERT_EQ(usage["vault"]["bases"].size(), 1U);
  EXPECT_EQ(usage["vault"]["bases"][0]["attempts"], contract::Json::array({"one"}));
  EXPECT_EQ(usage["vault"]["bases"][0]["repository"], world().repo() + "/.git");
  EXPECT_EQ(usage["attempts"]["folders"][0]["attempt_id"], "one");
  EXPECT_EQ(usage["total_bytes"].get<std::uint64_t>(), usage["ledger"]["bytes"].get<std::uint64_t>() +
                                                           usage["vault"]["bytes"].get<std::uint64_t>() +
                                                           usage["attempts"]["bytes"].get<std::uint64_t>());
  const std::string text = world().cofferdam({"df"}).out;
  EXPECT_TRUE(has(text, "BASE PACK")) << text;
  EXPECT_TRUE(has(text, "images")) << text;
}

TEST_P(Keeping, TheVaultKeepsWhatIsBorrowedAndNoMoreThanTheBound) {
  world().write(world().config(), "[cache]\nmax_bytes = 0\n");
  ASSERT_EQ(run_script("true", {"--config", world().config()}).status.code, 0);
  EXPECT_EQ(packs(), 0U) << "nothing was changed: nobody needs the pack";
  ASSERT_EQ(run_script("echo x > x.txt", {"--attempt-id", "one", "--config", world().config()}).status.code,
            0);
  EXPECT_EQ(packs(), 1U) << "its store borrows from it";
  EXPECT_TRUE(has(world().cofferdam({"diff", "one"}).out, "+x"));
  ASSERT_EQ(world().cofferdam({"discard", "one"}).status.code, 0);
  const contract::Json pruned = json_of({"prune", "--json", "--config", world().config()});
  EXPECT_EQ(pruned["evicted"].size(), 1U);
  EXPECT_EQ(packs(), 0U);
  // The control: without a bound it stays.
  ASSERT_EQ(run_script("true").status.code, 0);
  EXPECT_EQ(packs(), 1U);
}

TEST_P(Keeping, AttemptsOnOneHeadDoNotTakeThePackFromEachOther) {
  world().write(world().config(), "[cache]\nmax_bytes = 0\n");
  const std::vector<std::string> run = {
      "run",      "--json",         "--repo",  world().repo(),
      "--config", world().config(), "--agent", "command",
      "--",       "/bin/sh",        "-c",      "echo x > x.txt; git log --oneline > log.txt"};
  for (int round = 0; round < 2; ++round) {
    Running first(world(), run);
    Running second(world(), run);
    Running third(world(), run);
    for (Running* one : {&first, &second, &third}) {
      const RunOutcome outcome = one->finish();
      EXPECT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
    }
  }
  EXPECT_EQ(packs(), 1U);
  EXPECT_EQ(world().cofferdam({"verify"}).status.code, 0);
}

COFFERDAM_FOR_BOTH_USERS(Keeping);

}  // namespace
}  // namespace cofferdam::test
