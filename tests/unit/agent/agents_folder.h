// An agents folder in which only the names and modes are real, and what every launch has in common.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/launch.h"
#include "base/file.h"
#include "unit/agent/invocations.h"

namespace cofferdam::agent {

using Texts = std::vector<std::string>;

inline const Texts kBaseEnv = {"HOME=/home/agent",    "PATH=/usr/local/bin:/usr/bin:/bin",
                               "LANG=C.UTF-8",        "TMPDIR=/tmp",
                               "TERM=dumb",           "HUSKY=0",
                               "GIT_OPTIONAL_LOCKS=0"};

inline Texts operator+(Texts left, const Texts& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class AgentsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<TempDir> dir = TempDir::create("/tmp", "cofferdam-agents-");
    ASSERT_TRUE(dir) << dir.error().line();
    dir_ = std::make_unique<TempDir>(*std::move(dir));
  }

  const std::string& folder() const { return dir_->path(); }
  void add_program(const std::string& name, unsigned mode) {
    const std::string path = folder() + name;
    ASSERT_TRUE(make_dirs(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(write_file_atomic(path, "", mode));
  }

  Result<Launch> plan(const contract::InvocationFields& fields, std::uint16_t port = 8111) {
    const contract::Invocation invocation = built(fields);
    return plan_launch(LaunchInput{invocation, folder(), port});
  }

 private:
  std::unique_ptr<TempDir> dir_;
};

}  // namespace cofferdam::agent
