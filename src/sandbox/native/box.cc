#include "sandbox/native/box.h"

#include <fmt/core.h>
#include <signal.h>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "init/client.h"
#include "sandbox/controls.h"
#include "sandbox/native/plan_box.h"
#include "sandbox/native/seccomp_filter.h"

namespace cofferdam::sandbox {
namespace {

// Set-up takes milliseconds; this only bounds a host that has come to a stand.
constexpr int kSetUpBoundMs = 60'000;

using init_client::InitMessage;
using init_client::parse_number;

std::vector<FdMapping> map_fds(const contract::StorageRef& storage, const contract::Profile& profile) {
  std::vector<FdMapping> fds = {{storage.userns_fd, plan::kUsernsFd}, {storage.mntns_fd, plan::kMntnsFd}};
  int parked = plan::kFirstExtraFd;
  for (const FdMapping& map : profile.fds)
    fds.push_back({map.source, map.target <= 2 ? map.target : parked++});
  return fds;
}

// From outside: which host ids the box's only mapping leads to.
ProbeAnswer probe_id_map(std::uint64_t pid) {
  ProbeAnswer answer{"host-root-unmapped", false, "cannot read the id map"};
  std::string detail;
  for (const char* map : {"uid_map", "gid_map"}) {
    auto text = read_file(fmt::format("/proc/{}/{}", pid, map), 4096);
    if (!text) return answer;
    std::vector<std::string> numbers;
    for (std::string& part : split(*text, ' ')) {
      if (std::string_view number = trim(part); !number.empty()) numbers.emplace_back(number);
    }
    const bool one =
        numbers.size() == 3 && numbers[0] == std::to_string(plan::kInsideId) && numbers[2] == "1";
    detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", map, join(numbers, " "));
    // "0" only means the host's root when we read it from the initial namespace's point of view, which errs
    // on the strict side everywhere else.
    if (!one || numbers[1] == "0") return {answer.name, false, detail};
  }
  return {answer.name, true, detail};
}

}  // namespace

Result<Box> Box::start(const BoxHost& host, const contract::StorageRef& storage,
                       const contract::Profile& profile) {
  if (profile.deadline.count() <= 0) return make_error(Code::internal, "a box without a deadline");
  TRY(HostLayout layout, read_host_layout());
  TRY(std::string seccomp, compile_seccomp_filter());
  init_client::InitOptions options;
  options.program = host.init;
  options.run_as = host.run_as;
  options.fds = map_fds(storage, profile);
  TRY(init_client::InitProcess process, init_client::start_init(options, plan_box(profile, layout, seccomp)));
  Box box(std::move(process.child), std::move(process.control));
  TRY_VOID(box.set_up(profile));
  return box;
}

Status Box::set_up(const contract::Profile& profile) {
  std::vector<ProbeAnswer> answers;
  std::uint64_t pid = 0;
  while (true) {
    TRY(bool spoke, wait_readable(control_.get(), kSetUpBoundMs));
    if (!spoke)
      return make_error(Code::timeout, fmt::format("the {} box was not set up in time", profile.kind));
    TRY(InitMessage message, init_client::receive(control_.get()));
    if (message.kind == plan::from_init::ready) break;
    switch (message.kind) {
      case plan::from_init::failed:
        return init_client::setup_error(profile.kind, message);
      case plan::from_init::pid:
        pid = parse_number(message.fields[0]).value_or(0);
        break;
      case plan::from_init::listener:
        if (message.fds.size() != 1) return make_error(Code::protocol, "a listener did not arrive");
        listeners_.push_back(std::move(message.fds[0]));
        break;
      case plan::from_init::probe:
        if (message.fields.size() != 3) return make_error(Code::protocol, "a malformed probe answer");
        answers.push_back({message.fields[0], message.fields[1] == "1", message.fields[2]});
        break;
      default:
        return make_error(Code::protocol, fmt::format("the {} box ended during set-up", profile.kind));
    }
  }
  // Now, not when the pid came: the box's own user namespace exists only from some point of the set-up on.
  answers.push_back(probe_id_map(pid));
  if (listeners_.size() != profile.listeners.size())
    return make_error(Code::protocol, "a listener is missing");
  controls_ = judge(answers);
  return {};
}

Status Box::go() {
  if (const contract::ControlFact* missing = first_missing(controls_)) return not_in_force(*missing);
  return init_client::send_order(control_.get(), plan::to_init::go);
}

Result<BoxReport> Box::receive() {
  TRY(InitMessage message, init_client::receive(control_.get()));
  BoxReport report;
  auto field = [&](std::size_t i) {
    return i < message.fields.size() ? parse_number(message.fields[i]) : std::nullopt;
  };
  switch (message.kind) {
    case plan::from_init::started:
      report.kind = BoxReport::Kind::started;
      break;
    case plan::from_init::not_started:
      report.kind = BoxReport::Kind::not_started;
      report.error = static_cast<int>(field(0).value_or(0));
      break;
    case plan::from_init::deadline:
      report.kind = BoxReport::Kind::deadline;
      break;
    case plan::from_init::exited: {
      report.kind = BoxReport::Kind::exited;
      int value = static_cast<int>(field(1).value_or(255));
      if (message.fields[0] == "s") {
        report.status.signal = value;
      } else {
        report.status.code = value;
      }
      break;
    }
    case plan::from_init::gone:
      report.kind = BoxReport::Kind::gone;
      report.left_over = message.fields[0] == "1";
      report.peak_bytes = field(1).value_or(0) * 1024;
      report.cpu_ms = field(2).value_or(0);
      report.work_bytes = field(3).value_or(0);
      report.work_inodes = field(4).value_or(0);
      break;
    default:
      report.kind = BoxReport::Kind::lost;
      break;
  }
  return report;
}

// An init that is gone already cannot take the order, which is as good as having obeyed it.
void Box::terminate() {
  (void)init_client::send_order(control_.get(), plan::to_init::terminate).has_value();
}
void Box::kill() {
  child_.signal(SIGKILL);
}

Status Box::wait_gone(std::chrono::milliseconds limit) {
  if (!child_.running()) return {};
  auto status = child_.wait(limit);
  if (!status) return status.error().with("box");
  return {};
}

}  // namespace cofferdam::sandbox
