#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"

namespace cofferdam {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SpawnOptions shell(const std::string& script) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.argv = {"sh", "-c", script};
  options.env = {"PATH=/usr/bin:/bin"};
  return options;
}

Result<Captured> capture(const std::string& script, std::string_view input = {}) {
  return run_capture(shell(script), input, {1U << 20U, seconds(20)});
}

TEST(Process, GivesTheExitCodeOrTheSignal) {
  auto exited = capture("exit 3");
  ASSERT_TRUE(exited) << exited.error().line();
  EXPECT_EQ(exited->status.code, 3);
  EXPECT_EQ(exited->status.signal, std::nullopt);
  EXPECT_EQ(exited->status.describe(), "exit code 3");
  auto killed = capture("kill -9 $$");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->status.signal, 9);
  EXPECT_EQ(killed->status.code, std::nullopt);
  EXPECT_FALSE(killed->status.success());
}

TEST(Process, MissingProgramsAndFoldersAreErrors) {
  SpawnOptions options;
  options.program = "/nonexistent/program";
  options.argv = {"program"};
  auto missing = spawn(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::missing_tool);
  options = shell("true");
  options.cwd = "/nonexistent";
  auto nowhere = spawn(options);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().what.find("chdir"), std::string::npos);
}

TEST(Process, InheritsNoEnvironment) {
  ::setenv("COFFERDAM_TEST_SECRET", "x", 1);
  auto captured = run_capture(
      [] {
        SpawnOptions options;
        options.program = "/usr/bin/env";
        options.argv = {"env"};
        options.env = {"ONLY=this"};
        return options;
      }(),
      {}, {1U << 20U, seconds(20)});
  ::unsetenv("COFFERDAM_TEST_SECRET");
  ASSERT_TRUE(captured) << captured.error().line();
  EXPECT_EQ(captured->out, "ONLY=this\n");
}

// `cat` between two pipes: runs until the test closes its input, and has echoed once when this returns, so it
// is past everything that its start opens for a moment.
struct Waiting {
  Pipe in;
  Pipe out;
  Child child;
};

Result<Waiting> start_waiting() {
  Waiting waiting;
  TRY(waiting.in, make_pipe());
  TRY(waiting.out, make_pipe());
  SpawnOptions options;
  options.program = "/bin/cat";
  options.argv = {"cat"};
  options.fds = {{waiting.in.read.get(), 0}, {waiting.out.write.get(), 1}};
  TRY(waiting.child, spawn(options));
  waiting.in.read.reset();
  waiting.out.write.reset();
  TRY_VOID(write_all(waiting.in.write.get(), "x"));
  bool would_block = false;
  TRY(std::string echoed, read_some(waiting.out.read.get(), 1, &would_block));
  if (echoed != "x") return make_error(Code::internal, "cat does not echo");
  return waiting;
}

TEST(Process, InheritsNoDescriptorsNorBlockedSignals) {
  // Leaked on purpose: not close-on-exec, and one of them with a high number.
  UniqueFd leaked(::open("/dev/null", O_RDONLY));
  UniqueFd high(::fcntl(leaked.get(), F_DUPFD, 200));
  ASSERT_TRUE(leaked.valid() && high.valid());
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto waiting = start_waiting();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(waiting) << waiting.error().line();
  const std::string proc = "/proc/" + std::to_string(waiting->child.pid());
  auto open = list_dir(proc + "/fd");
  auto status = read_file(proc + "/status", 1U << 20U);
  ASSERT_TRUE(open && status);
  EXPECT_EQ(*open, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_NE(status->find("SigBlk:\t0000000000000000\n"), std::string::npos) << *status;
}

TEST(Process, MapsDescriptorsEvenWhenTheyCross) {
  auto first = make_pipe();
  auto second = make_pipe();
  ASSERT_TRUE(first && second);
  // Each one's number is the other's target: a dup2 in turn would lose one of them.
  SpawnOptions options = shell("echo one >&" + std::to_string(second->write.get()) + "; echo two >&" +
                               std::to_string(first->write.get()));
  if (first->write.get() > 9 || second->write.get() > 9) GTEST_SKIP() << "sh takes one digit only";
  options.fds = {{first->write.get(), second->write.get()}, {second->write.get(), first->write.get()}};
  auto child = spawn(options);
  ASSERT_TRUE(child) << child.error().line();
  first->write.reset();
  second->write.reset();
  auto one = read_to_end(first->read.get(), 100);
  auto two = read_to_end(second->read.get(), 100);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(*one, "one\n");
  EXPECT_EQ(*two, "two\n");
  auto status = child->wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success());
}

TEST(Process, UnnamedStandardStreamsAreDevNull) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  SpawnOptions options;
  options.program = "/bin/cat";
  options.argv = {"cat", "/dev/fd/3"};  // runs until the pipe's write end is closed
  options.fds = {{pipe->read.get(), 3}};
  auto child = spawn(options);
  ASSERT_TRUE(child) << child.error().line();
  for (const char* fd : {"0", "1", "2"}) {
    auto target = real_path("/proc/" + std::to_string(child->pid()) + "/fd/" + fd);
    ASSERT_TRUE(target) << target.error().line();
    EXPECT_EQ(*target, "/dev/null");
  }
}

TEST(Child, WaitIsBoundedAndLeavesItRunning) {
  auto waiting = start_waiting();
  ASSERT_TRUE(waiting) << waiting.error().line();
  auto early = waiting->child.wait(milliseconds(5));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::timeout);
  EXPECT_TRUE(waiting->child.running());
  waiting->child.signal(SIGTERM);
  auto status = waiting->child.wait(seconds(20));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_FALSE(waiting->child.running());
}

TEST(Child, DestructorKillsAndReaps) {
  pid_t pid = -1;
  {
    auto waiting = start_waiting();
    ASSERT_TRUE(waiting) << waiting.error().line();
    pid = waiting->child.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Child, StartsASessionOfItsOwn) {
  auto waiting = start_waiting();
  ASSERT_TRUE(waiting);
  EXPECT_EQ(::getsid(waiting->child.pid()), waiting->child.pid());
}

TEST(RunCapture, FeedsAndCollectsMoreThanAPipeHolds) {
  std::string input;
  for (int i = 0; i < 60'000; ++i) input += "0123456789\n";
  SpawnOptions options;
  options.program = "/bin/cat";
  options.argv = {"cat"};
  auto captured = run_capture(options, input, {1U << 20U, seconds(30)});
  ASSERT_TRUE(captured) << captured.error().line();
  EXPECT_TRUE(captured->status.success());
  EXPECT_TRUE(captured->out == input);
}

TEST(RunCapture, AProgramThatDoesNotReadIsNoError) {
  ::signal(SIGPIPE, SIG_IGN);  // as the main functions of all our programs do
  auto captured = capture("exec 0</dev/null; echo done", std::string(1U << 20U, 'x'));
  ASSERT_TRUE(captured) << captured.error().line();
  EXPECT_EQ(captured->out, "done\n");
}

TEST(RunCapture, TooMuchOutputEndsTheProgram) {
  SpawnOptions options = shell("while :; do echo 0123456789; done");
  auto captured = run_capture(options, {}, {1000, seconds(30)});
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().code, Code::exhausted);
}

TEST(RunCapture, TooMuchErrorOutputIsDropped) {
  auto captured = capture("head -c 100000 /dev/zero >&2; echo out");
  ASSERT_TRUE(captured) << captured.error().line();
  EXPECT_EQ(captured->out, "out\n");
  EXPECT_EQ(captured->err.size(), 65'536U);
}

TEST(RunCapture, TimeEndsTheProgram) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  SpawnOptions options = shell("cat <&3");
  options.fds = {{pipe->read.get(), 3}};
  auto captured = run_capture(options, {}, {1000, milliseconds(50)});
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().code, Code::timeout);
}

}  // namespace
}  // namespace cofferdam
