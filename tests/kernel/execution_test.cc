// What can be executed in a box whose shell is "none", and that each act works in one with a shell.
#include "base/text.h"
#include "kernel/fixture.h"

namespace cofferdam::test {
namespace {

constexpr const char* kStatic = "/opt/agent/box-probe";
constexpr const char* kDynamic = "/opt/agent/dynamic-probe";
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";

class Execution : public Kernel {
 protected:
  std::string without_shell(const Args& probe) const { return driver("without-shell", probe); }
  std::string with_shell(const Args& probe) const { return driver("exec", probe); }
};

TEST_P(Execution, StaticAndDynamicAgentsRun) {
  if (!ready()) return;
  for (const char* program : {kStatic, kDynamic}) {
    EXPECT_EQ(without_shell({program, "nothing"}), "works\n") << program;
    // And may start each other: they are the agent's.
    EXPECT_EQ(without_shell({program, "execute", kStatic, "nothing"}), "works\nworks\n") << program;
    EXPECT_EQ(without_shell({program, "execute", kDynamic, "nothing"}), "works\nworks\n") << program;
  }
}

// A program of the host's own, at its own path: with its libraries, and nothing beside them.
TEST_P(Execution, ACommandOfTheHosts) {
  if (!ready()) return;
  const std::string names = without_shell({"/usr/bin/ls", "/usr/bin", "/etc"});
  EXPECT_NE(names.find("/usr/bin:\nls\n"), std::string::npos) << names;
  EXPECT_EQ(names.find("alternatives"), std::string::npos) << names;
  EXPECT_NE(with_shell({"/usr/bin/ls", "/usr/bin"}).find("\nenv\n"), std::string::npos) << "the control";
}

TEST_P(Execution, NothingElseRuns) {
  if (!ready()) return;
  struct Row {
    Args act;
    const char* denied;
    const char* allowed;  // the control, with a shell
  };
  const std::vector<Row> rows = {
      {{"execute", "/bin/true"}, "ENOENT\n", "works\n"},
      {{"execute", "/usr/bin/bash", "-c", "exit 0"}, "ENOENT\n", "works\n"},
      {{"execute", kLoader, "/usr/bin/bash", "-c", "exit 0"}, "ENOEXEC\n", "works\n"},
      {{"execute-copy", kStatic, "/tmp/copy", "nothing"}, "EACCES\n", "works\nworks\n"},
      {{"execute-copy", kStatic, "/home/agent/copy", "nothing"}, "EACCES\n", "works\nworks\n"},
      {{"execute-copy", kStatic, "/workspace/copy", "nothing"}, "EACCES\n", "works\nworks\n"},
      {{"execute-copy", kStatic, "/dev/shm/copy", "nothing"}, "EACCES\n", "works\nworks\n"},
      {{"load-copy", kLoader, kDynamic, "/tmp/copy", "nothing"}, "ENOEXEC\n", "works\nworks\n"},
      {{"load-copy", kLoader, kDynamic, "/workspace/copy", "nothing"}, "ENOEXEC\n", "works\nworks\n"},
      {{"execute-script", "/tmp/script", "/bin/sh", "-e"}, "EACCES\n", "works\n"},
      {{"execute-script", "/workspace/script", kStatic, "nothing"}, "EACCES\n", nullptr},
      {{"memfd-exec"}, "EACCES\n", "works\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(join(row.act, " "));
    Args argv = {kDynamic};  // so that its loader is in the box
    argv.insert(argv.end(), row.act.begin(), row.act.end());
    const std::string said = without_shell(argv);
    // The loader says why on standard error, which the driver appends.
    EXPECT_NE(said.find(row.denied), std::string::npos) << said;
    if (row.allowed != nullptr) {
      EXPECT_EQ(with_shell(argv), row.allowed) << "the control";
    }
  }
}

// What is no program of its own is refused before there is a box.
TEST_P(Execution, ScriptsAndNamesWithoutAPathAreRefused) {
  if (!ready()) return;
  ASSERT_TRUE(write_file_atomic(root() + "/script", "#!/bin/sh\nexit 0\n", 0755));
  EXPECT_EQ(driver("refuse-without-shell", {root() + "/script"}).rfind("denied: ", 0), 0U);
  EXPECT_EQ(driver("refuse-without-shell", {"ls"}).rfind("denied: ", 0), 0U);
  EXPECT_EQ(driver("refuse-without-shell", {kStatic}), "went\n") << "the control";
}

// The control is there, and proven, only where it was asked for.
TEST_P(Execution, IsProvenWhereItIsAskedFor) {
  if (!ready()) return;
  const std::string facts = driver("controls", {"without-shell"});
  EXPECT_NE(facts.find("enforced execution "), std::string::npos) << facts;
  EXPECT_NE(facts.find("enforced landlock "), std::string::npos) << facts;
  EXPECT_EQ(facts.find("OPEN execution"), std::string::npos) << facts;
  EXPECT_EQ(driver("controls", {}).find("OPEN landlock"), std::string::npos) << "with a shell, too";
  EXPECT_EQ(driver("controls", {}).find(" execution "), std::string::npos);
}

// Debuggers work on the box's own processes, under the filter and the rules.
TEST_P(Execution, DebuggersWork) {
  if (!ready()) return;
  for (const Args& argv :
       {Args{"/usr/bin/gdb", "-q", "-batch", "-ex", "run", "-ex", "info inferiors", "/usr/bin/true"},
        {"/usr/bin/strace", "-o", "/tmp/trace", "/usr/bin/true"}}) {
    if (!exists(argv[0])) {
      skip_or_fail("debuggers", argv[0] + " is not installed");
      continue;
    }
    const std::string said = driver("exec", argv);
    EXPECT_EQ(said.find("exit code"), std::string::npos) << said;
    if (argv[0] == "/usr/bin/gdb") {
      EXPECT_NE(said.find("exited normally"), std::string::npos) << said;
    }
  }
}

COFFERDAM_FOR_BOTH_USERS(Execution);

}  // namespace
}  // namespace cofferdam::test
