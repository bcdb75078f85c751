// The plan of every kind of box as text: a change of what a box is made of shows as a diff.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "golden/golden.h"
#include "handoff/collect.h"
#include "handoff/snapshot.h"
#include "sandbox/native/plan_box.h"
#include "workspace/prepare.h"

namespace cofferdam::golden {
namespace {

using contract::Access;
using contract::Profile;
using plan::Op;
using plan::OpCode;
using plan::Plan;

// A host with merged /usr, fixed here: the golden texts do not depend on where the tests run.
sandbox::HostLayout fixed_layout() {
  return {{{"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}},
          {"alternatives", "ld.so.cache"},
          "TZif2 (a time zone)"};
}

std::string op_name(OpCode code) {
  constexpr std::array kNames = {"?",    "dir",     "file", "symlink", "tmpfs",
                                 "bind", "overlay", "proc", "devpts",  "device"};
  return kNames.at(static_cast<std::size_t>(code));
}

std::string one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "\\n");
  return text;
}

std::string render(const Op& op) {
  std::string line = fmt::format("  {:<8}{}", op_name(op.code), op.b);
  if (op.code == OpCode::bind)
    line += fmt::format(" <- {} {}", op.a, (op.n1 & plan::kReadOnly) != 0 ? "ro" : "RW");
  if (op.code == OpCode::bind && (op.n1 & plan::kNoExec) != 0) line += " noexec";
  if (op.code == OpCode::overlay) line += fmt::format(" <- {} ro", op.a);
  if (op.code == OpCode::dir) line += fmt::format(" {:04o}", op.n1);
  if (op.code == OpCode::tmpfs)
    line += fmt::format(" {} bytes, {} inodes, {:04o}{}", op.n1, op.n2, op.n3 & 07777U,
                        (op.n3 & plan::kNoExec) != 0 ? " noexec" : "");
  if (op.code == OpCode::device) line += fmt::format(" <- {} {}:{}", op.a, op.n1 >> 8U, op.n1 & 0xFFU);
  if (op.code == OpCode::symlink) line += " -> " + op.a;
  if (op.code == OpCode::file) line += " = " + one_line(op.a);
  return line + "\n";
}

// A program's text has tests of its own; here it is only a script.
std::string render_argument(const std::string& argument) {
  return argument.find('\n') == std::string::npos ? argument : "<script>";
}

std::string numbers(const std::vector<std::uint64_t>& values) {
  std::string out;
  for (std::uint64_t value : values) out += fmt::format(" {}", value);
  return out.empty() ? " none" : out;
}

std::string list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "  " + render_argument(item) + "\n";
  return out;
}

std::string render(const Plan& plan) {
  constexpr std::array kAccess = {"none", "read-only", "read-write"};
  std::string out = plan.role == plan::Role::box ? "box\nmounts\n" : "keeper\nmounts\n";
  for (const Op& op : plan.ops) out += render(op);
  out += "argv\n" + list(plan.argv) + "env\n" + list(plan.env) + "cwd " + plan.cwd + "\n";
  out += "masked\n" + list(plan.masked) + "read-only\n" + list(plan.read_only);
  out += fmt::format("shell {}\nlandlock\n", plan.shell);
  for (const plan::PathRule& rule : plan.landlock)
    out += fmt::format("  {:#06x} {}\n", rule.access, rule.path);
  out += "listeners" + numbers(plan.listeners) + "\ndescriptors" + numbers(plan.program_fds) + "\n";
  out += fmt::format("deadline {} ms, grace {} ms, file size {}, open files {}\n", plan.deadline_ms,
                     plan.grace_ms, plan.file_size_limit, plan.open_files);
  out +=
      fmt::format("memory {}, pids {}, process limit {}\n", plan.memory_bytes, plan.pids, plan.process_limit);
  const plan::Expected& expected = plan.expected;
  out += fmt::format("expected work {}, metadata {}, output {}\n", kAccess.at(expected.work),
                     kAccess.at(expected.metadata), kAccess.at(expected.output));
  out += fmt::format("expected work {} bytes, {} inodes; scratch {} bytes, {} inodes\n", expected.work_bytes,
                     expected.work_inodes, expected.scratch_bytes, expected.scratch_inodes);
  return out;
}

void expect_plan(const std::string& name, const Profile& profile) {
  expect_golden("plan_" + name, render(sandbox::plan_box(profile, fixed_layout(), std::string(8, '\0'))));
}

// As attempt/run.cc makes it; the program and its environment are the adapter's.
Profile agent(Access work, std::vector<std::uint16_t> listeners, const std::string& agent_dir) {
  Profile profile;
  profile.kind = "agent";
  profile.argv = {"/opt/agent/bin/agent", "--print"};
  profile.env = {"HOME=/home/agent", "PATH=/usr/bin:/bin"};
  profile.work = work;
  profile.metadata = Access::read_only;
  profile.agent_dir = agent_dir;
  profile.scratch_bytes = 512ULL << 20U;
  profile.scratch_inodes = 100'000;
  profile.work_bytes = 2ULL << 30U;
  profile.work_inodes = 500'000;
  profile.memory_bytes = 4ULL << 30U;
  profile.pids = 4096;
  profile.listeners = std::move(listeners);
  profile.deadline = std::chrono::minutes(30);
  profile.grace = std::chrono::seconds(5);
  profile.fds = {{20, 0}, {21, 1}, {22, 2}};
  return profile;
}

TEST(PlanText, AgentInImplementation) {
  expect_plan("agent_implementation", agent(Access::read_write, {8080}, "/srv/agents/claude"));
}

TEST(PlanText, AgentInAReadOnlyPhase) {
  expect_plan("agent_read_only", agent(Access::read_only, {8080}, "/srv/agents/claude"));
}

TEST(PlanText, AgentWithoutAShell) {
  Profile profile = agent(Access::read_write, {8080}, "/srv/agents/claude");
  profile.shell = contract::Shell::none;
  sandbox::HostLayout layout = fixed_layout();
  layout.programs = {{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2", true},
                     {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", false}};
  expect_golden("plan_agent_no_shell", render(sandbox::plan_box(profile, layout, std::string(8, '\0'))));
}

TEST(PlanText, Command) {
  Profile profile = agent(Access::read_write, {}, "");
  profile.kind = "command";
  profile.argv = {"/usr/bin/make", "test"};
  expect_plan("command", profile);
}

TEST(PlanText, Prepare) {
  contract::InvocationFields fields;
  fields.attempt_id = "golden";
  fields.phase = contract::Phase::implementation;
  fields.agent = {"command", {"/bin/true"}};
  fields.clone = {"/srv/repository", std::string(40, 'a'), std::nullopt};
  auto invocation = contract::build_invocation(fields);
  ASSERT_TRUE(invocation) << invocation.error().line();
  contract::CloneIdentity clone;
  clone.head = std::string(40, 'a');
  clone.base = clone.head;
  clone.object_format = "sha1";
  expect_plan("prepare", workspace::prepare_profile(*invocation, clone));
  expect_plan("make_tree", workspace::make_tree_profile(clone, {8ULL << 30U, 1'000'000}, 30));
}

TEST(PlanText, Snapshot) {
  handoff::SnapshotInput input;
  input.base_tree = std::string(40, 'b');
  input.work_bytes = 2ULL << 30U;
  input.work_inodes = 500'000;
  input.stdout_fd = 20;
  input.stderr_fd = 21;
  expect_plan("snapshot", handoff::snapshot_profile(input));
}

TEST(PlanText, Collect) {
  handoff::CollectInput input;
  input.base_tree = std::string(40, 'b');
  input.tree = std::string(40, 'c');
  input.work_bytes = 2ULL << 30U;
  input.work_inodes = 500'000;
  input.stdout_fd = 20;
  input.stderr_fd = 21;
  input.pack_fd = 22;
  input.index_fd = 23;
  expect_plan("collect", handoff::collect_profile(input));
}

}  // namespace
}  // namespace cofferdam::golden
