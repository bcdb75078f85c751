// box-bench VERB INIT AGENT_DIR IDS ARG...: boxes without the rest of the product, for tests/bench/boxes.py.
// IDS is "-", or who root becomes for its boxes. With BOX_BENCH_CGROUP every box has a control group below
// that name.
//   time TRIES [NAME PROGRAM...|-]...   a box, and each of the other commands, by turns; a line of figures
//   each hold                                a box whose program stays until standard input ends sequence N
//   boxes one after another, each with a storage of its own
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "kernel/lab.h"

namespace cofferdam::test {
namespace {

using Args = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

long microseconds(Clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - since).count();
}

// What the program says first: from then on it runs, in a box or not.
Status hear(int fd, const std::string& wanted) {
  bool would_block = false;
  TRY(std::string said, read_some(fd, 4096, &would_block));
  if (said != wanted) return make_error(Code::internal, "the program said '" + said + "'");
  return {};
}

Status run_to_its_end(sandbox::Box* box) {
  while (true) {
    TRY(sandbox::BoxReport report, box->receive());
    if (report.kind == sandbox::BoxReport::Kind::lost) break;
    if (report.kind == sandbox::BoxReport::Kind::exited && !report.status.success()) {
      return make_error(Code::internal, "the program ended with " + report.status.describe());
    }
  }
  return box->wait_gone(std::chrono::seconds(30));
}

Status time_box(const LabOptions& lab, const contract::StorageRef& storage) {
  TRY(Pipe out, make_pipe());
  contract::Profile profile = agent_profile(lab, {"/opt/agent/box-probe", "nothing"});
  profile.fds = {{out.write.get(), 1}};
  long ready = 0, running = 0;
  std::uint64_t probing = 0;
  const auto begin = Clock::now();
  {
    TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage, profile));
    ready = microseconds(begin);
    out.write.reset();
    TRY_VOID(box.go());
    TRY_VOID(hear(out.read.get(), "works\n"));
    running = microseconds(begin);
    probing = box.probing_us();
    TRY_VOID(run_to_its_end(&box));
  }
  print(fmt::format("box running={} gone={} ready={} probing={}\n", running, microseconds(begin), ready,
                    probing));
  return {};
}

Status time_other(const std::string& name, const Args& command) {
  TRY(Pipe out, make_pipe());
  SpawnOptions options;
  options.program = command.front();
  options.argv = command;
  options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"};
  options.fds = {{out.write.get(), 1}, {2, 2}};
  const auto begin = Clock::now();
  TRY(Child child, spawn(options));
  out.write.reset();
  TRY_VOID(hear(out.read.get(), "works\n"));
  const long running = microseconds(begin);
  TRY(ExitStatus status, child.wait(std::chrono::seconds(60)));
  if (!status.success()) return make_error(Code::internal, name + " ended with " + status.describe());
  print(fmt::format("{} running={} gone={}\n", name, running, microseconds(begin)));
  return {};
}

// By turns, so that a busy moment of the machine meets all of them.
Status verb_time(const LabOptions& lab, const Args& args) {
  std::vector<Args> others;
  for (std::size_t at = 1; at < args.size(); ++at) {
    if (others.empty() || args[at - 1] == "-") others.emplace_back();
    if (args[at] != "-") others.back().push_back(args[at]);
  }
  TRY(workspace::Storage storage, make_storage(lab));
  for (int i = std::stoi(args.at(0)); i > 0; --i) {
    TRY_VOID(time_box(lab, storage.ref()));
    for (const Args& other : others) {
      TRY_VOID(time_other(other.at(0), Args(other.begin() + 1, other.end())));
    }
  }
  return storage.release();
}

Status verb_hold(const LabOptions& lab, const Args&) {
  TRY(Pipe out, make_pipe());
  TRY(workspace::Storage storage, make_storage(lab));
  contract::Profile profile = agent_profile(lab, {"/opt/agent/box-probe", "stay"});
  profile.deadline = std::chrono::minutes(10);
  profile.fds = {{out.write.get(), 1}};
  {
    TRY(sandbox::Box box, sandbox::Box::start(lab.host, storage.ref(), profile));
    out.write.reset();
    TRY_VOID(box.go());
    bool would_block = false;
    TRY(std::string said, read_some(out.read.get(), 4096, &would_block));
    if (said.empty()) return make_error(Code::internal, "the program said nothing");
    print(box.describe() + "; " + storage.describe() + "\n");
    TRY(std::string nothing, read_to_end(0, 4096));
    box.kill();
    TRY_VOID(box.wait_gone(std::chrono::seconds(60)));
  }
  return storage.release();
}

// Descriptors, mounts and groups of this process's, and the processes below it.
std::string holdings(const LabOptions& lab) {
  std::string out;
  if (auto fds = list_dir("/proc/self/fd")) out += fmt::format("descriptors {}", fds->size());
  if (auto mounts = read_file("/proc/self/mountinfo", 4U << 20U)) {
    out += fmt::format(", mounts {} {:x}", split(*mounts, '\n').size(), std::hash<std::string>()(*mounts));
  }
  const std::string self = fmt::format("/proc/self/task/{}/children", ::getpid());
  if (auto children = read_file(self, 65536)) {
    out += fmt::format(", children {}", std::count(children->begin(), children->end(), ' '));
  }
  if (lab.host.groups == nullptr) return out + "\n";
  long groups = 0;
  for (const sandbox::CgroupTree& tree : lab.host.groups->place().trees) {
    std::vector<std::string> level = {tree.folder};
    while (!level.empty()) {
      const std::string folder = std::move(level.back());
      level.pop_back();
      auto names = is_directory(folder) ? list_dir(folder) : Result<Args>(Args());
      groups += is_directory(folder) ? 1 : 0;
      for (const std::string& name : names ? *names : Args()) {
        if (is_directory(folder + "/" + name)) level.push_back(fmt::format("{}/{}", folder, name));
      }
    }
  }
  return out + fmt::format(", groups {}\n", groups);
}

Status one_of_many(const LabOptions& lab) {
  TRY(workspace::Storage storage, make_storage(lab));
  TRY(sandbox::BoxOutput output,
      run_agent(lab, storage.ref(), {"/opt/agent/box-probe", "create", "/workspace/x"}));
  if (output.out != "works\n") return make_error(Code::internal, output.out + output.err);
  return storage.release();
}

Status spill(const LabOptions& lab) {
  SpawnOptions options;
  options.program = "/bin/sleep";
  options.argv = {"sleep", "600"};
  options.die_with_parent = false;
  TRY(Child child, spawn(options));
  child.detach();
  TRY(UniqueFd null, open_file("/dev/null", O_RDONLY));
  (void)null.release();
  if (lab.host.groups == nullptr) return {};
  return make_new_dir(lab.host.groups->place().trees.front().folder + "/spilled", 0755);
}

// The first warms up: what is made once per process, the attempt's own group among it, is no box's.
Status verb_sequence(const LabOptions& lab, const Args& args) {
  TRY_VOID(one_of_many(lab));
  const std::string before = holdings(lab);
  for (int i = std::stoi(args.at(0)); i > 0; --i) TRY_VOID(one_of_many(lab));
  if (args.size() > 1) TRY_VOID(spill(lab));
  print("before " + before + "after " + holdings(lab));
  return {};
}

int run(const Args& args) {
  ::signal(SIGPIPE, SIG_IGN);
  if (args.size() < 4) return 2;
  LabOptions lab;
  lab.host.init = args[1];
  lab.agent_dir = args[2];
  if (args[3] != "-") {
    const auto id = static_cast<uid_t>(std::stoul(args[3]));
    lab.host.run_as = UserIds{id, id};
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (const char* name = std::getenv("BOX_BENCH_CGROUP"); name != nullptr) {
    sandbox::CgroupPlace place = sandbox::find_cgroup_place(name);
    if (!place.usable()) {
      std::fprintf(stderr, "no control groups: %s\n", place.why_not.c_str());
      return 3;
    }
    lab.host.requirements.mode = contract::Mode::rootless;
    lab.host.groups = std::make_shared<sandbox::AttemptGroup>(std::move(place), "bench");
  }
  const Args rest(args.begin() + 4, args.end());
  Status status = make_error(Code::usage, "no such verb");
  if (args[0] == "time") status = verb_time(lab, rest);
  if (args[0] == "hold") status = verb_hold(lab, rest);
  if (args[0] == "sequence") status = verb_sequence(lab, rest);
  if (status) return 0;
  std::fprintf(stderr, "%s: %s\n", code_name(status.error().code), status.error().line().c_str());
  return 1;
}

}  // namespace
}  // namespace cofferdam::test

int main(int argc, char** argv) {
  return cofferdam::test::run(std::vector<std::string>(argv + 1, argv + argc));
}
