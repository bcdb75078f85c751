#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "contract/json.h"

namespace cofferdam::cli {
namespace {

TEST(Doctor, ReadyWithWeakerRows) {
  const std::vector<CheckRow> rows = {{"kernel", CheckState::ok, "Linux 6.1", "unused"},
                                      {"memory", CheckState::weaker, "1.0 GiB", "free some"}};
  EXPECT_TRUE(is_ready(rows));
  EXPECT_EQ(doctor_text(rows),
            "CHECK   STATE   DETAIL\n"
            "kernel  ok      Linux 6.1\n"
            "memory  weaker  1.0 GiB; free some\n"
            "\nready\n");
}

TEST(Doctor, TheFirstObstacleIsTheConclusion) {
  const std::vector<CheckRow> rows = {{"a", CheckState::weaker, "w", "later"},
                                      {"b", CheckState::unavailable, "gone", "install b"},
                                      {"c", CheckState::unavailable, "gone", "install c"}};
  EXPECT_FALSE(is_ready(rows));
  EXPECT_EQ(conclusion(rows), "not ready: install b");
  EXPECT_EQ(conclusion({{"b", CheckState::unavailable, "gone"}}), "not ready: b: gone");
}

TEST(Doctor, JsonSaysTheSame) {
  auto json =
      contract::parse_json(doctor_json({{"b", CheckState::unavailable, "gone\xff", "install b"}}), 4096);
  ASSERT_TRUE(json) << json.error().line();
  EXPECT_EQ((*json)["ready"], false);
  EXPECT_EQ((*json)["checks"][0]["state"], "unavailable");
  EXPECT_EQ((*json)["conclusion"], "not ready: install b");
}

TEST(Doctor, ControlsBecomeRows) {
  const auto rows = control_rows(
      {{"no-network", true, true, "p"}, {"seccomp", true, false, "q"}, {"pinned-root", false, false, "r"}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].state, CheckState::ok);
  EXPECT_EQ(rows[1].state, CheckState::unavailable);
  EXPECT_EQ(rows[2].state, CheckState::weaker);
}

TEST(Doctor, NoBoxIsOneRowWithItsRemedy) {
  const auto rows = box_rows(make_error(Code::unsupported_host, "no namespaces", "set a sysctl"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].name, "box");
  EXPECT_EQ(rows[0].state, CheckState::unavailable);
  EXPECT_EQ(rows[0].detail + "; " + rows[0].remedy, "no namespaces; set a sysctl");
  EXPECT_EQ(conclusion(rows), "not ready: set a sysctl");
  EXPECT_EQ(box_rows(std::vector<contract::ControlFact>{{"seccomp", true, true, "p"}})[0].name, "seccomp");
}

TEST(Doctor, ConfigurationThatCannotBeReadStandsInTheWay) {
  const CheckRow bad = config_row(load_config({}, "/nonexistent/config.toml"), "/nonexistent/config.toml");
  EXPECT_EQ(bad.state, CheckState::unavailable);
  EXPECT_NE(bad.detail.find("/nonexistent/config.toml"), std::string::npos) << bad.detail;
  EXPECT_EQ(config_row(contract::Config{}, std::nullopt).state, CheckState::ok);
}

std::vector<std::string> names_of(const std::vector<CheckRow>& rows) {
  std::vector<std::string> names;
  for (const CheckRow& row : rows) {
    EXPECT_FALSE(row.detail.empty()) << row.name;
    names.push_back(row.name);
  }
  return names;
}

attempt::HostStorage in_memory() {
  return {.kind = "tmpfs"};
}

TEST(Doctor, HostChecksNameEachThingOnce) {
  EXPECT_EQ(names_of(needed_rows({})),
            (std::vector<std::string>{"kernel", "user-namespaces", "git", "init"}));
  EXPECT_EQ(
      names_of(attempt_rows({}, {}, in_memory())),
      (std::vector<std::string>{"host-memory", "agent claude", "agent codex", "credential", "state folder"}));
}

const CheckRow& named(const std::vector<CheckRow>& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const CheckRow& row) { return row.name == name; });
}

TEST(Doctor, MemoryCountsWhatAnAttemptMayTake) {
  contract::Config config;
  config.limits.work_bytes = 1U << 20U;
  config.limits.scratch_bytes = 1U << 16U;
  const std::vector<CheckRow> small = attempt_rows({}, config, in_memory());
  EXPECT_EQ(named(small, "host-memory").state, CheckState::ok);
  // Three times the work (the way out is twice as large as the work tree) and three mounts of scratch.
  EXPECT_NE(named(small, "host-memory").detail.find("3 MiB as an upper bound"), std::string::npos)
      << named(small, "host-memory").detail;
  config.limits.work_bytes = 1ULL << 40U;
  const std::vector<CheckRow> large = attempt_rows({}, config, in_memory());
  EXPECT_EQ(named(large, "host-memory").state, CheckState::weaker);
  EXPECT_NE(named(large, "host-memory").detail.find("3072.0 GiB"), std::string::npos)
      << named(large, "host-memory").detail;
  // A disk that holds the work tree is no memory; what is brought home is.
  const std::vector<CheckRow> disk = attempt_rows({}, config, attempt::HostStorage{.kind = "image"});
  EXPECT_NE(named(disk, "host-memory").detail.find("2048.0 GiB"), std::string::npos)
      << named(disk, "host-memory").detail;
}

TEST(Doctor, SlotsAreCountedWhereThereAreSome) {
  const auto row_of = [](unsigned slots, unsigned fitting, unsigned free) {
    const attempt::HostStorage storage{"slot", slots, fitting, free, 1ULL << 30U};
    return named(attempt_rows({}, {}, storage), "slots");
  };
  const CheckRow some = row_of(4, 3, 2);
  EXPECT_EQ(some.state, CheckState::ok);
  EXPECT_EQ(some.detail, "2 of 3 free, 1.0 GiB each");
  const CheckRow none = row_of(4, 3, 0);
  EXPECT_EQ(none.state, CheckState::unavailable);
  EXPECT_NE(none.detail.find("no capacity"), std::string::npos) << none.detail;
  const CheckRow unfit = row_of(4, 0, 0);
  EXPECT_EQ(unfit.state, CheckState::unavailable);
  EXPECT_NE(unfit.remedy.find("host-setup"), std::string::npos) << unfit.remedy;
}

TEST(Doctor, WithoutClaudeCommandsWork) {
  contract::Config config;
  config.agents_dir = "/nonexistent";
  const std::vector<CheckRow> rows = attempt_rows({}, config, in_memory());
  EXPECT_EQ(named(rows, "agent claude").state, CheckState::weaker);
  EXPECT_NE(named(rows, "agent claude").remedy.find("npm ci"), std::string::npos);
}

}  // namespace
}  // namespace cofferdam::cli
