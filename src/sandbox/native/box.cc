#include "sandbox/native/box.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "init/client.h"
#include "sandbox/native/box_bounds.h"
#include "sandbox/native/elf_needs.h"
#include "sandbox/native/plan_box.h"
#include "sandbox/native/probe_root.h"
#include "sandbox/native/seccomp_filter.h"

namespace cofferdam::sandbox {
namespace {

// Set-up takes milliseconds; this only bounds a host that has come to a stand.
constexpr int kSetUpBoundMs = 60'000;
constexpr std::chrono::seconds kEndBound{30};
// Of what the launcher's end has proven to be dead already.
constexpr std::chrono::seconds kEmptyBound{10};
// The group is to refuse a process before RLIMIT_NPROC does: only the group counts what it has refused.
constexpr std::uint64_t kBehindGroup = 1;

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

// What we will signal must be the launcher's own child, whatever the message says. The descriptor first: it
// keeps meaning the process that is then looked at.
Result<UniqueFd> open_init(std::uint64_t pid, pid_t launcher) {
  UniqueFd init(pid == 0 || pid > INT32_MAX ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  auto status = read_file(fmt::format("/proc/{}/status", pid), 16384);
  const std::string parent = fmt::format("\nPPid:\t{}\n", launcher);
  const bool own =
      pid == static_cast<std::uint64_t>(launcher) || (status && status->find(parent) != std::string::npos);
  if (!init.valid() || !own) return make_error(Code::protocol, "the box's init is not the launcher's child");
  return init;
}

Result<BoxGroup> make_group(const BoxHost& host, const contract::Profile& profile) {
  auto made = host.groups->make_box(profile.kind, bounds_of(profile));
  if (made) return made;
  Error error = made.error().with("control group of the " + profile.kind + " box");
  error.hint =
      "see the rows memory and pids of 'cofferdam doctor'; as root `cofferdam host-setup` makes groups "
      "for a user who is not";
  return error;
}

Error malformed() {
  return make_error(Code::protocol, "a malformed report of the box's init");
}

Result<BoxReport> decode_not_started(const InitMessage& message) {
  const auto error = parse_number(message.fields[0]);
  if (message.fields.size() != 1 || !error.has_value() || *error > 4095) return malformed();
  BoxReport report;
  report.kind = BoxReport::Kind::not_started;
  report.error = static_cast<int>(*error);
  return report;
}

// "c" or "s", and a number that fits: anything else must not become a success by being cut to size.
Result<BoxReport> decode_exited(const InitMessage& message) {
  if (message.fields.size() != 2) return malformed();
  const auto value = parse_number(message.fields[1]);
  const bool by_signal = message.fields[0] == "s";
  if (!value.has_value() || *value > (by_signal ? 64U : 255U) || (!by_signal && message.fields[0] != "c")) {
    return malformed();
  }
  BoxReport report;
  report.kind = BoxReport::Kind::exited;
  (by_signal ? report.status.signal : report.status.code) = static_cast<int>(*value);
  return report;
}

Result<BoxReport> decode_gone(const InitMessage& message) {
  if (message.fields.size() != 7) return malformed();
  std::uint64_t numbers[6] = {};
  for (std::size_t i = 0; i < 6; ++i) {
    const auto value = parse_number(message.fields[i + 1]);
    if (!value.has_value()) return malformed();
    numbers[i] = *value;
  }
  BoxReport report;
  report.kind = BoxReport::Kind::gone;
  report.left_over = message.fields[0] == "1";
  report.peak_bytes = std::min<std::uint64_t>(numbers[0], INT64_MAX / 1024) * 1024;
  report.cpu_ms = numbers[1];
  report.work_bytes = numbers[2];
  report.work_inodes = numbers[3];
  report.sampled_bytes = numbers[4];
  report.peak_pids = numbers[5];
  return report;
}

Result<BoxReport> decode_over(const InitMessage& message) {
  const auto peak = parse_number(message.fields.size() == 2 ? message.fields[1] : "");
  const std::string& control = message.fields[0];
  if (!peak.has_value() || (control != "memory" && control != "pids")) return malformed();
  BoxReport report;
  report.kind = BoxReport::Kind::over;
  report.control = control;
  report.peak = *peak;
  return report;
}

Result<BoxReport> decode_full(const InitMessage& message) {
  const std::string& control = message.fields[0];
  const bool known = control == "work-bytes" || control == "work-inodes" || control == "scratch";
  if (message.fields.size() != 1 || !known) return malformed();
  BoxReport report;
  report.kind = BoxReport::Kind::full;
  report.control = control;
  return report;
}

}  // namespace

Result<Box> Box::start(const BoxHost& host, const contract::StorageRef& storage,
                       const contract::Profile& profile) {
  if (profile.deadline.count() <= 0) return make_error(Code::internal, "a box without a deadline");
  TRY(HostLayout layout,
      profile.image.has_value() ? read_image_layout(profile.image->tree) : read_host_layout());
  const bool shell = profile.shell == contract::Shell::sandboxed;
  if (!shell) {
    TRY(layout.programs, program_files(profile));
  }
  const std::string seccomp = compile_seccomp_filter(shell ? RuleScope::always : RuleScope::without_shell);
  plan::Plan plan = plan_box(profile, layout, seccomp);
  init_client::InitOptions options;
  options.program = host.init;
  options.run_as = host.run_as;
  options.fds = map_fds(storage, profile);
  std::optional<BoxGroup> group;
  if (host.groups != nullptr && has_layer(plan, plan::Layer::cgroup)) {
    TRY(BoxGroup made, make_group(host, profile));
    group.emplace(std::move(made));
    options.join_fds = group->entries();
    options.group_fd = group->folder_fd();
    plan.process_limit += kBehindGroup;
  }
  TRY(init_client::InitProcess process, init_client::start_init(options, plan));
  Box box(std::move(group), std::move(process.child), std::move(process.control));
  TRY_VOID(box.set_up(profile, host, plan.process_limit));
  return box;
}

Status Box::set_up(const contract::Profile& profile, const BoxHost& host, std::uint64_t process_limit) {
  std::vector<ProbeAnswer> answers;
  TRY_VOID(collect_answers(profile, &answers));
  // Now, not when the pid came: the box's own user namespace exists only from some point of the set-up on.
  const auto pid = static_cast<std::uint64_t>(init_pid_);
  answers.push_back(probe_id_map(pid));
  answers.push_back(probe_root(pid, child_.pid(), profile));
  BoundsQuery bounds{pid, group_.has_value() ? &*group_ : nullptr, host.why_no_groups, process_limit};
  for (ProbeAnswer& answer : probe_bounds(bounds)) answers.push_back(std::move(answer));
  if (listeners_.size() != profile.listeners.size())
    return make_error(Code::protocol, "a listener is missing");
  Requirements asked = host.requirements;
  if (profile.host_programs) asked.choices["pinned-root"] = contract::Need::best_effort;
  controls_ = judge(answers, asked, profile.shell);
  return {};
}

Status Box::collect_answers(const contract::Profile& profile, std::vector<ProbeAnswer>* answers) {
  while (true) {
    TRY(bool spoke, wait_readable(control_.get(), kSetUpBoundMs));
    if (!spoke)
      return make_error(Code::timeout, fmt::format("the {} box was not set up in time", profile.kind));
    TRY(InitMessage message, init_client::receive(control_.get()));
    switch (message.kind) {
      case plan::from_init::ready:
        probing_us_ = parse_number(message.fields[0]).value_or(0);
        return {};
      case plan::from_init::failed:
        return init_client::setup_error(profile.kind, message);
      case plan::from_init::pid: {
        const std::uint64_t pid = parse_number(message.fields[0]).value_or(0);
        TRY(init_, open_init(pid, child_.pid()));
        init_pid_ = static_cast<pid_t>(pid);
        break;
      }
      case plan::from_init::listener:
        if (message.fds.size() != 1) return make_error(Code::protocol, "a listener did not arrive");
        listeners_.push_back(std::move(message.fds[0]));
        break;
      case plan::from_init::probe:
        if (message.fields.size() != 3) return make_error(Code::protocol, "a malformed probe answer");
        answers->push_back({message.fields[0], message.fields[1] == "1", message.fields[2]});
        break;
      default:
        return make_error(Code::protocol, fmt::format("the {} box ended during set-up", profile.kind));
    }
  }
}

Status Box::go() {
  if (const contract::ControlFact* missing = first_missing(controls_)) return not_in_force(*missing);
  return init_client::send_order(control_.get(), plan::to_init::go);
}

Result<BoxReport> Box::receive() {
  TRY(InitMessage message, init_client::receive(control_.get()));
  BoxReport report;
  switch (message.kind) {
    case plan::from_init::started:
      report.kind = BoxReport::Kind::started;
      return report;
    case plan::from_init::deadline:
      report.kind = BoxReport::Kind::deadline;
      return report;
    case plan::from_init::not_started:
      return decode_not_started(message);
    case plan::from_init::over:
      return decode_over(message);
    case plan::from_init::full:
      return decode_full(message);
    case plan::from_init::exited:
      return decode_exited(message);
    case plan::from_init::gone:
      return decode_gone(message);
    case 0:
      return report;  // lost: init has closed the socket
    default:
      return malformed();
  }
}

// An init that is gone already cannot take the order, which is as good as having obeyed it.
void Box::terminate() {
  (void)init_client::send_order(control_.get(), plan::to_init::terminate).has_value();
}

// PID 1, not the launcher: the kernel then empties the namespace, the launcher reaps PID 1, and its end is
// the proof. (A launcher that is killed leaves the end of the box to a death signal that nobody waits for.)
void Box::kill() {
  // Stopped first, so that nothing that it would still do comes in between.
  if (group_.has_value()) group_->kill(child_.pid());
  if (init_.valid()) {
    ::syscall(SYS_pidfd_send_signal, init_.get(), SIGKILL, nullptr, 0);
  } else {
    child_.signal(SIGKILL);
  }
}

Box::~Box() {
  if (!child_.running()) return;
  kill();
  (void)wait_gone(kEndBound).has_value();
}

std::string Box::describe() const {
  return fmt::format("box, launcher pid {}, init pid {}", child_.pid(), init_pid_);
}

Status Box::wait_gone(std::chrono::milliseconds limit) {
  if (!child_.running()) return {};
  auto status = child_.wait(limit);
  if (!status) return status.error().with("box");
  if (group_.has_value()) return group_->wait_empty(kEmptyBound);
  return {};
}

std::optional<GroupFacts> Box::group_facts() const {
  if (!group_.has_value()) return std::nullopt;
  return group_->facts();
}

std::optional<GroupBounds> Box::group_bounds() const {
  if (!group_.has_value()) return std::nullopt;
  return group_->bounds();
}

}  // namespace cofferdam::sandbox
