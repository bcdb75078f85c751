#include "kernel/fixture.h"

#include <sys/stat.h>

#include "base/text.h"

namespace cofferdam::test {
namespace {

constexpr uid_t kRootlessId = 12345;
constexpr const char* kBoxId = "65533";  // who root becomes for boxes, as in the product

bool copy_program(const std::string& from, const std::string& to, mode_t mode) {
  auto bytes = read_file(from, 512U << 20U);
  return bytes && write_file_atomic(to, *bytes, 0755) && ::chmod(to.c_str(), mode) == 0;
}

}  // namespace

void Kernel::SetUp() {
  if (GetParam() == User::root && !running_as_root()) {
    skip_or_fail("root", "the tests do not run as root");
    return;
  }
  if (GetParam() == User::rootless && running_as_root()) ids_ = UserIds{kRootlessId, kRootlessId};
  auto folder = TempDir::create("/var/tmp", "cofferdam-kernel-");
  ASSERT_TRUE(folder) << folder.error().line();
  folder_.emplace(std::move(*folder));
  ASSERT_EQ(::chmod(root().c_str(), 0755), 0);
  ASSERT_TRUE(make_new_dir(agent_dir(), 0755));
  ASSERT_EQ(::chmod(agent_dir().c_str(), 0755), 0);
  const std::string build = COFFERDAM_BUILD_DIR;
  ASSERT_TRUE(copy_program(build + "/cofferdam-init", root() + "/cofferdam-init", 0755));
  ASSERT_TRUE(copy_program(build + "/tests/box-driver", root() + "/box-driver", 0755));
  ASSERT_TRUE(copy_program(build + "/tests/box-probe", agent_dir() + "/box-probe", 0755));
  ASSERT_TRUE(copy_program(build + "/tests/dynamic-probe", agent_dir() + "/dynamic-probe", 0755));
  ASSERT_TRUE(copy_program(build + "/tests/box-probe", agent_dir() + "/set-id-probe", 06755));
  if (const std::string found = outside({"--own", "nothing"}); found != "works\n") {
    skip_or_fail("userns", found);
    return;
  }
  ready_ = true;
}

SpawnOptions Kernel::driver_options(const std::string& scenario, const Args& args) const {
  SpawnOptions options;
  options.program = root() + "/box-driver";
  const bool as_root = running_as_root() && !ids_.has_value();
  options.argv = {"box-driver", scenario, root() + "/cofferdam-init", agent_dir(), as_root ? kBoxId : "-"};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.env = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "COFFERDAM_TEST_SECRET=of-the-supervisor"};
  options.run_as = ids_;
  return options;
}

std::string Kernel::driver(const std::string& scenario, const Args& args) const {
  auto captured = run_capture(driver_options(scenario, args), "", {});
  if (!captured) {
    ADD_FAILURE() << captured.error().line();
    return {};
  }
  EXPECT_TRUE(captured->status.success()) << scenario << " " << join(args, " ") << ": " << captured->err;
  return captured->out;
}

namespace {

// As root for the way itself: it is what becomes the test's user.
std::string through(const Args& way, SpawnOptions options) {
  Args argv = way;
  if (options.run_as.has_value()) {
    const std::string id = std::to_string(options.run_as->uid);
    argv.insert(argv.end(), {"--reuid", id, "--regid", id});
  }
  argv.push_back(options.program);
  argv.insert(argv.end(), options.argv.begin() + 1, options.argv.end());
  options.program = way.front();
  options.argv = std::move(argv);
  options.run_as.reset();
  auto captured = run_capture(options, "", {});
  return captured ? captured->out + captured->err : captured.error().line();
}

}  // namespace

std::string Kernel::driver_through(const Args& way, const std::string& scenario, const Args& args) const {
  return through(way, driver_options(scenario, args));
}

std::string Kernel::probe_through(const Args& way, const Args& probe) const {
  SpawnOptions options;
  options.program = agent_dir() + "/box-probe";
  options.argv = {"box-probe"};
  options.argv.insert(options.argv.end(), probe.begin(), probe.end());
  options.env = {"PATH=/usr/bin:/bin"};
  // Root needs no group: only who is not root can show what one is worth.
  options.run_as = ids_.value_or(UserIds{kRootlessId, kRootlessId});
  return through(way, options);
}

std::string Kernel::run_probe(const Args& probe, const std::optional<UserIds>& as) const {
  SpawnOptions options;
  options.program = agent_dir() + "/box-probe";
  options.argv = {"box-probe"};
  options.argv.insert(options.argv.end(), probe.begin(), probe.end());
  options.env = {"PATH=/usr/bin:/bin"};
  options.run_as = as;
  auto captured = run_capture(options, "", {});
  if (!captured) {
    ADD_FAILURE() << captured.error().line();
    return {};
  }
  return captured->out + captured->err;
}

}  // namespace cofferdam::test
