#include "cli/host.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/exit_code.h"

namespace cofferdam::cli {
namespace {

class HostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "host.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    environment_.home = folder_->path();
  }
  std::string path(const std::string& name) const { return folder_->path() + "/" + name; }

  std::optional<TempDir> folder_;
  Environment environment_;
};

TEST_F(HostTest, StateFolderComesFromTheMostSpecificVariable) {
  EXPECT_EQ(*state_dir_path(environment_), path(".local/state/cofferdam"));
  environment_.xdg_state_home = "relative";
  EXPECT_EQ(*state_dir_path(environment_), path(".local/state/cofferdam"));
  environment_.xdg_state_home = "/x";
  EXPECT_EQ(*state_dir_path(environment_), "/x/cofferdam");
  environment_.state_dir = "/y/z";
  EXPECT_EQ(*state_dir_path(environment_), "/y/z");
  environment_.state_dir = "y/z";
  EXPECT_EQ(state_dir_path(environment_).error().code, Code::config);
  EXPECT_EQ(state_dir_path(Environment{}).error().code, Code::config);
}

TEST_F(HostTest, StateFolderIsMadePrivate) {
  EXPECT_FALSE(existing_state_dir(environment_)->has_value()) << "reading verbs make nothing";
  auto made = prepare_state_dir(environment_);
  ASSERT_TRUE(made) << made.error().line();
  struct stat info {};
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  EXPECT_TRUE(prepare_state_dir(environment_)) << "and is fine the second time";
  EXPECT_EQ(existing_state_dir(environment_)->value(), *made);
}

TEST_F(HostTest, StateFolderThatOthersMayWriteToIsRefused) {
  auto made = prepare_state_dir(environment_);
  ASSERT_TRUE(made);
  for (const unsigned mode : {0720U, 0702U, 0777U}) {
    ASSERT_EQ(::chmod(made->c_str(), mode), 0);
    auto again = prepare_state_dir(environment_);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::denied);
    EXPECT_NE(again.error().line().find("chmod 0700"), std::string::npos) << again.error().line();
    EXPECT_EQ(existing_state_dir(environment_).error().code, Code::denied);
  }
  ASSERT_EQ(::chmod(made->c_str(), 0755), 0);
  EXPECT_TRUE(prepare_state_dir(environment_));
}

TEST_F(HostTest, StateFolderOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) {
    // "/" belongs to root, and is no less a folder of somebody else than any other.
    EXPECT_EQ(check_state_dir("/").error().code, Code::denied);
    return;
  }
  auto made = prepare_state_dir(environment_);
  ASSERT_TRUE(made);
  ASSERT_EQ(::chown(made->c_str(), 65534, 65534), 0);
  Status checked = check_state_dir(*made);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::denied);
  EXPECT_NE(checked.error().what.find("belongs to uid 65534"), std::string::npos) << checked.error().what;
}

TEST_F(HostTest, StateFolderThatIsAFileIsRefused) {
  environment_.state_dir = path("file");
  ASSERT_TRUE(write_file_atomic(environment_.state_dir, "x"));
  EXPECT_FALSE(prepare_state_dir(environment_));
  EXPECT_EQ(existing_state_dir(environment_).error().code, Code::denied);
}

TEST_F(HostTest, OnlyTheDefaultConfigurationMayBeMissing) {
  EXPECT_TRUE(load_config(environment_, std::nullopt));
  auto missing = load_config(environment_, path("none.toml"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::config);
  ASSERT_TRUE(make_dirs(path(".config/cofferdam")));
  ASSERT_TRUE(write_file_atomic(path(".config/cofferdam/config.toml"), "[branch]\nprefix = \"agents\"\n"));
  auto loaded = load_config(environment_, std::nullopt);
  ASSERT_TRUE(loaded) << loaded.error().line();
  EXPECT_EQ(loaded->branch_prefix, "agents");
  environment_.xdg_config_home = path("other");
  EXPECT_EQ(load_config(environment_, std::nullopt)->branch_prefix, "cofferdam");
  ASSERT_TRUE(write_file_atomic(path("bad.toml"), "[branch]\nno_such_key = 1\n"));
  auto bad = load_config(environment_, path("bad.toml"));
  ASSERT_FALSE(bad);
  EXPECT_EQ(exit_code_for(bad.error().code), 2);
}

TEST_F(HostTest, AgentsFolderIsTheFirstThatIsNamedOrThere) {
  ASSERT_TRUE(make_dirs(path("build/dev")));
  const std::string exe_dir = path("build/dev");
  EXPECT_EQ(find_agents_dir(environment_, {}, exe_dir), exe_dir + "/../share/cofferdam/agents");
  ASSERT_TRUE(make_dirs(path("agents")));
  EXPECT_EQ(find_agents_dir(environment_, {}, exe_dir), *real_path(path("agents")));
  ASSERT_TRUE(make_dirs(path("build/share/cofferdam/agents")));
  EXPECT_EQ(find_agents_dir(environment_, {}, exe_dir), *real_path(path("build/share/cofferdam/agents")));
  environment_.agents_dir = "/from/environment";
  EXPECT_EQ(find_agents_dir(environment_, {}, exe_dir), "/from/environment");
  contract::Config config;
  config.agents_dir = "/from/config";
  EXPECT_EQ(find_agents_dir(environment_, config, exe_dir), "/from/config");
}

TEST_F(HostTest, InitIsBesideOrInstalled) {
  ASSERT_TRUE(make_dirs(path("bin")));
  EXPECT_EQ(find_init(path("bin")).error().code, Code::missing_tool);
  ASSERT_TRUE(make_dirs(path("libexec/cofferdam")));
  ASSERT_TRUE(write_file_atomic(path("libexec/cofferdam/cofferdam-init"), "", 0755));
  EXPECT_EQ(*find_init(path("bin")), *real_path(path("libexec/cofferdam/cofferdam-init")));
  ASSERT_TRUE(write_file_atomic(path("bin/cofferdam-init"), "", 0755));
  EXPECT_EQ(*find_init(path("bin")), *real_path(path("bin/cofferdam-init")));
}

TEST(AttemptId, IsNeverAPath) {
  EXPECT_TRUE(check_attempt_id("20261130-3f9a2c71d0"));
  for (const char* id : {"", "..", "a/b", "-a", "a-", "A", "a b"}) {
    EXPECT_EQ(check_attempt_id(id).error().code, Code::usage) << id;
  }
}

TEST(ExitCode, OfEveryErrorCode) {
  for (const Code code : {Code::usage, Code::config, Code::not_found}) EXPECT_EQ(exit_code_for(code), 2);
  for (const Code code : {Code::denied, Code::conflict, Code::unsupported_host, Code::exhausted})
    EXPECT_EQ(exit_code_for(code), 3);
  for (const Code code : {Code::missing_tool, Code::timeout, Code::io, Code::protocol, Code::internal}) {
    EXPECT_EQ(exit_code_for(code), 6);
  }
}

}  // namespace
}  // namespace cofferdam::cli
