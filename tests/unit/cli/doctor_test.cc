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

TEST(Doctor, HostChecksNameEachThingOnce) {
  const auto rows = host_rows({}, "/nonexistent/config.toml");
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().name, "configuration");
  EXPECT_EQ(rows.front().state, CheckState::unavailable);
  std::vector<std::string> names;
  for (const CheckRow& row : rows) {
    EXPECT_FALSE(row.detail.empty()) << row.name;
    names.push_back(row.name);
  }
  for (const char* name : {"kernel", "user-namespaces", "seccomp", "landlock", "memory", "git", "init",
                           "agent claude", "agent codex", "credential", "state folder"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

}  // namespace
}  // namespace cofferdam::cli
