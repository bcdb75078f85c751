// box-driver SCENARIO INIT AGENT_DIR IDS ARG...: the supervisor's part of one scenario. IDS is "-", or who
// root becomes for its boxes ("65533"). Results go to standard output; tests/kernel/*_test.cc judges them.
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "kernel/lab.h"
#include "sandbox/native/cgroup_files.h"
#include "sandbox/native/cgroup_tree.h"

namespace cofferdam::test {
namespace {

using Args = std::vector<std::string>;
constexpr std::size_t kMaxOutput = 1U << 20U;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Args in_box(const Args& args) {
  Args argv = {"/opt/agent/box-probe"};
  argv.insert(argv.end(), args.begin(), args.end());
  return argv;
}

std::string describe(const sandbox::BoxOutput& output) {
  return output.out + (output.status.success() ? "" : output.status.describe() + ": " + output.err);
}

// A probe in a box of its own.
Status scenario_run(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  TRY(sandbox::BoxOutput output, run_agent(lab, storage.ref(), in_box(args)));
  print(describe(output));
  return storage.release();
}

// Any program of the agent's folder.
Status scenario_exec(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  TRY(sandbox::BoxOutput output, run_agent(lab, storage.ref(), args));
  print(describe(output));
  return storage.release();
}

// The same in a box whose shell is "none".
Status scenario_without_shell(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, args);
  profile.shell = contract::Shell::none;
  TRY(sandbox::BoxOutput output, sandbox::run_box(lab.host, storage.ref(), profile, kMaxOutput, {}));
  print(describe(output));
  return storage.release();
}

Status scenario_refuse_without_shell(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, args);
  profile.shell = contract::Shell::none;
  auto box = sandbox::Box::start(lab.host, storage.ref(), profile);
  Status went = box ? box->go() : Status(box.error());
  print(went ? "went\n" : fmt::format("{}: {}\n", code_name(went.error().code), went.error().what));
  return {};
}

Status scenario_below(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  TRY(sandbox::BoxOutput output, run_without_filter(lab, storage.ref(), in_box(args)));
  print(describe(output));
  return storage.release();
}

Status scenario_controls(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, in_box({"nothing"}));
  if (!args.empty()) profile.shell = contract::Shell::none;
  TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
  for (const contract::ControlFact& fact : box.controls()) {
    print(fmt::format("{} {} {}\n", fact.enforced ? "enforced" : "OPEN", fact.name, fact.proof));
  }
  return {};
}

// The profile says less than the storage has: "bytes" or "inodes" or, as the control, "nothing".
Status scenario_refuse(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, in_box({"create", "/workspace/x"}));
  if (args.at(0) == "bytes") profile.work_bytes = kWorkBytes / 2;
  if (args.at(0) == "inodes") profile.work_inodes = kWorkInodes / 2;
  if (args.at(0) == "metadata") profile.metadata = contract::Access::none;
  TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
  Status go = box.go();
  print(go ? "went\n" : fmt::format("{}: {}\n", code_name(go.error().code), go.error().what));
  return {};
}

// A program that does not end by itself; this process then only waits: to be stopped, or killed.
Status scenario_hold(const LabOptions& lab, const Args& args) {
  TRY(Pipe out, make_pipe());
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, in_box({"stay"}));
  profile.deadline = std::chrono::milliseconds(std::stol(args.at(0)));
  profile.fds = {{out.write.get(), 1}};
  TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
  out.write.reset();
  TRY_VOID(box.go());
  bool would_block = false;
  TRY(std::string said, read_some(out.read.get(), 64, &would_block));
  print(said);
  while (true) ::poll(nullptr, 0, -1);
}

// Every process below this one, each held by a descriptor of its own.
std::vector<UniqueFd> descendants() {
  std::vector<UniqueFd> held;
  std::vector<std::string> parents = {std::to_string(::getpid())};
  auto names = list_dir("/proc");
  for (std::size_t i = 0; names && i < parents.size(); ++i) {
    const std::string parent = fmt::format("\nPPid:\t{}\n", parents[i]);
    for (const std::string& name : *names) {
      auto status = read_file("/proc/" + name + "/status", 65536);
      if (!status || status->find(parent) == std::string::npos) continue;
      parents.push_back(name);
      held.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(name), 0)));
    }
  }
  return held;
}

// Boxes that are killed. What of one still runs when wait_gone() says that it is gone?
Status scenario_kill(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  int survivors = 0;
  for (int i = std::stoi(args.at(0)); i > 0; --i) {
    TRY(Pipe out, make_pipe());
    contract::Profile profile = agent_profile(lab, in_box({"stay"}));
    profile.fds = {{out.write.get(), 1}};
    TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
    out.write.reset();
    TRY_VOID(box.go());
    bool would_block = false;
    TRY(std::string said, read_some(out.read.get(), 64, &would_block));
    std::vector<UniqueFd> processes = descendants();
    box.kill();
    TRY_VOID(box.wait_gone(std::chrono::seconds(30)));
    for (const UniqueFd& process : processes) {
      TRY(bool ended, wait_readable(process.get(), 0));
      if (!ended) ++survivors;
    }
    --survivors;  // the keeper
  }
  print(fmt::format("survivors {}\n", survivors));
  return {};
}

// An agent's box runs one probe; then a box as the snapshot needs it starts in the same storage.
Status scenario_after(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage storage, make_storage(lab));
  TRY(sandbox::BoxOutput left, run_agent(lab, storage.ref(), in_box(args)));
  print("agent: " + left.out);
  contract::Profile profile = agent_profile(lab, in_box({"create", "/out/x"}));
  profile.kind = "snapshot";
  profile.work = contract::Access::read_only;
  profile.output = contract::Access::read_write;
  TRY(sandbox::BoxOutput output, sandbox::run_box(lab.host, storage.ref(), profile, kMaxOutput, {}));
  print("snapshot: " + output.out);
  return {};
}

// What this process holds: descriptors, mounts, children.
std::string holdings() {
  std::string out;
  if (auto fds = list_dir("/proc/self/fd")) out += fmt::format("descriptors {}\n", fds->size());
  if (auto mounts = read_file("/proc/self/mountinfo", kMaxOutput)) {
    out += fmt::format("mounts {} {}\n", split(*mounts, '\n').size(), std::hash<std::string>()(*mounts));
  }
  int children = 0;
  auto names = list_dir("/proc");
  const std::string parent = fmt::format("\nPPid:\t{}\n", ::getpid());
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    auto status = read_file("/proc/" + name + "/status", 65536);
    if (status && status->find(parent) != std::string::npos) ++children;
  }
  return out + fmt::format("children {}\n", children);
}

Status scenario_sequence(const LabOptions& lab, const Args& args) {
  print(holdings() + "--\n");
  for (int i = std::stoi(args.at(0)); i > 0; --i) {
    TRY(workspace::Storage storage, make_storage(lab));
    TRY(sandbox::BoxOutput output, run_agent(lab, storage.ref(), in_box({"create", "/workspace/x"})));
    if (output.out != "works\n") return make_error(Code::internal, output.out);
    TRY_VOID(storage.release());
  }
  print(holdings());
  return {};
}

// A box that holds files, a socket and a process, and what others see of it: one in another storage, and a
// sibling in the same one.
Status scenario_pair(const LabOptions& lab, const Args& args) {
  TRY(workspace::Storage first, make_storage(lab));
  TRY(workspace::Storage second, make_storage(lab));
  TRY(Pipe in, make_pipe());
  TRY(Pipe out, make_pipe());
  contract::Profile profile = agent_profile(lab, in_box({"hold", args.at(0)}));
  profile.fds = {{in.read.get(), 0}, {out.write.get(), 1}};
  TRY(sandbox::Box holder, sandbox::Box::start(lab.host, first.ref(), profile));
  in.read.reset();
  out.write.reset();
  TRY_VOID(holder.go());
  bool would_block = false;
  TRY(std::string said, read_some(out.read.get(), 64, &would_block));
  print(said);
  for (const auto& [name, storage] : {std::pair{"other", &second}, std::pair{"sibling", &first}}) {
    for (const Args& look : {Args{"list-processes"}, Args{"list", "/workspace"}, Args{"list", "/tmp"},
                             Args{"connect-abstract", args.at(0)}}) {
      TRY(sandbox::BoxOutput output, run_agent(lab, storage->ref(), in_box(look)));
      for (const std::string& line : split(output.out, '\n')) {
        print(fmt::format("{}: {}: {}\n", name, look[0] + (look.size() > 1 ? " " + look[1] : ""), line));
      }
    }
  }
  in.write.reset();
  return holder.wait_gone(std::chrono::seconds(30));
}

// The folder of the box's group where its processes can be stopped.
Result<std::string> group_of(const LabOptions& lab, pid_t init) {
  const sandbox::CgroupPlace& place = lab.host.groups->place();
  const auto tree = sandbox::tree_of(place, "freezer");
  if (!tree.has_value()) return make_error(Code::unsupported_host, "no freezer");
  TRY(const std::string text, read_file(fmt::format("/proc/{}/cgroup", init), 65536));
  return sandbox::folder_of_group(text, place.trees[*tree].mount);
}

// How often the list of processes has to be read until it is another one; `most` when it stays.
int reads_until_other(const std::string& folder, int most) {
  const std::vector<pid_t> before = sandbox::processes_of(folder);
  int reads = 0;
  while (reads < most && sandbox::processes_of(folder) == before) ++reads;
  return reads;
}

// A program whose descendant is another process at every moment, so that no list of it can be trusted unless
// it has been stopped.
Status scenario_hopper(const LabOptions& lab, const Args&) {
  if (lab.host.groups == nullptr) return make_error(Code::usage, "COFFERDAM_TEST_CGROUP is not set");
  constexpr int kMost = 1'000'000;
  TRY(Pipe out, make_pipe());
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile =
      agent_profile(lab, {"/usr/bin/python3", "-c",
                          "import os, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                          "if os.fork():\n  print('hopping', flush=True)\n  signal.pause()\n"
                          "while True:\n  if os.fork(): os._exit(0)\n"});
  profile.fds = {{out.write.get(), 1}};
  std::string folder;
  {
    TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
    out.write.reset();
    TRY_VOID(box.go());
    bool would_block = false;
    TRY(std::string said, read_some(out.read.get(), 64, &would_block));
    print(said);
    TRY(folder, group_of(lab, box.init_pid()));
    const int version = lab.host.groups->place().version;
    const int free = reads_until_other(folder, kMost);
    print(free < kMost ? "free: hops\n" : "free: stays\n");
    print(sandbox::freeze(folder, version, std::chrono::seconds(30)) ? "freeze: in time\n"
                                                                     : "freeze: late\n");
    const int most = 100 * (free + 1);
    print(reads_until_other(folder, most) == most ? "frozen: stays\n" : "frozen: hops\n");
    sandbox::thaw(folder, version);
    print(reads_until_other(folder, kMost) < kMost ? "thawed: hops\n" : "thawed: stays\n");
    box.kill();
    TRY_VOID(box.wait_gone(std::chrono::seconds(30)));
    print(fmt::format("killed: {} left\n", sandbox::processes_of(folder).size()));
  }
  print(exists(folder) ? "group: there\n" : "group: removed\n");
  return storage.release();
}

// As root, for the user of that number.
Status scenario_hand_over(const LabOptions&, const Args& args) {
  const auto id = static_cast<uid_t>(std::stoul(args.at(1)));
  return sandbox::make_user_cgroups(args.at(0), {id, id});
}

Status scenario_take_back(const LabOptions&, const Args& args) {
  return sandbox::remove_user_cgroups(args.at(0), static_cast<uid_t>(std::stoul(args.at(1))));
}

using Scenario = Status (*)(const LabOptions&, const Args&);
const std::map<std::string, Scenario>& scenarios() {
  static const std::map<std::string, Scenario> table = {
      {"run", scenario_run},
      {"exec", scenario_exec},
      {"below", scenario_below},
      {"without-shell", scenario_without_shell},
      {"refuse-without-shell", scenario_refuse_without_shell},
      {"controls", scenario_controls},
      {"refuse", scenario_refuse},
      {"hold", scenario_hold},
      {"sequence", scenario_sequence},
      {"kill", scenario_kill},
      {"after", scenario_after},
      {"pair", scenario_pair},
      {"hopper", scenario_hopper},
      {"hand-over", scenario_hand_over},
      {"take-back", scenario_take_back}};
  return table;
}

int run(const Args& args) {
  auto found = args.size() < 4 ? scenarios().end() : scenarios().find(args[0]);
  if (found == scenarios().end()) return 2;
  LabOptions lab;
  lab.host.init = args[1];
  lab.agent_dir = args[2];
  if (args[3] != "-") {
    const auto id = static_cast<uid_t>(std::stoul(args[3]));
    lab.host.run_as = UserIds{id, id};
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (const char* name = std::getenv("COFFERDAM_TEST_CGROUP"); name != nullptr) {
    sandbox::CgroupPlace place = sandbox::find_cgroup_place(name);
    if (!place.usable()) {
      std::fprintf(stderr, "%s\n", place.why_not.c_str());
      return 1;
    }
    lab.host.requirements.mode = contract::Mode::rootless;
    lab.host.groups = std::make_shared<sandbox::AttemptGroup>(std::move(place), "driver");
  }
  Status status = found->second(lab, Args(args.begin() + 4, args.end()));
  if (status) return 0;
  std::fprintf(stderr, "%s: %s\n", code_name(status.error().code), status.error().line().c_str());
  return 1;
}

}  // namespace
}  // namespace cofferdam::test

int main(int argc, char** argv) {
  return cofferdam::test::run(std::vector<std::string>(argv + 1, argv + argc));
}
