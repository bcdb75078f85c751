// Interfaces of the kernel that no build needs.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/fanotify.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "acts.h"

namespace box_probe {
namespace {

int join_keyring(const Args&) {
  return outcome(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0));
}

int add_a_key(const Args&) {
  return outcome(::syscall(SYS_add_key, "user", "cofferdam-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

int request_a_key(const Args&) {
  return outcome(::syscall(SYS_request_key, "user", "cofferdam-no-such-key", nullptr, 0));
}

int bpf_map(const Args&) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 8;
  attributes.max_entries = 1;
  return outcome(::syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

int perf_event(const Args&) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.exclude_kernel = 1;
  return outcome(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

int user_fault(const Args&) {
  return outcome(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

int io_uring(const Args&) {
  io_uring_params parameters{};
  return outcome(::syscall(SYS_io_uring_setup, 1, &parameters));
}

int memfd_secret(const Args&) {
  return outcome(::syscall(SYS_memfd_secret, O_CLOEXEC));
}

int name_to_handle(const Args& args) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + 128> memory{};
  auto* handle = reinterpret_cast<file_handle*>(memory.data());  // NOLINT
  handle->handle_bytes = 128;
  int mount = 0;
  return outcome(::name_to_handle_at(AT_FDCWD, argument(args, 0).c_str(), handle, &mount, 0));
}

// With a handle made by the kernel where it makes one, and a forged one otherwise.
int open_by_handle(const Args& args) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + 128> memory{};
  auto* handle = reinterpret_cast<file_handle*>(memory.data());  // NOLINT
  handle->handle_bytes = 128;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, argument(args, 0).c_str(), handle, &mount, 0) != 0) {
    handle->handle_bytes = 8;
    handle->handle_type = 1;
  }
  const int folder = ::open(argument(args, 0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  return outcome(::open_by_handle_at(folder, handle, O_RDONLY | O_CLOEXEC));
}

int set_host_name(const Args&) {
  return outcome(::sethostname("probe", 5));
}

int no_randomisation(const Args&) {
  return outcome(::personality(ADDR_NO_RANDOMIZE));
}

int read_ldt(const Args&) {
  std::array<char, 64> buffer{};
  return outcome(::syscall(SYS_modify_ldt, 0, buffer.data(), buffer.size()));
}

int kernel_log(const Args&) {
  return outcome(::klogctl(10 /* SYSLOG_ACTION_SIZE_BUFFER */, nullptr, 0));
}

int read_clock_state(const Args&) {
  timex state{};  // modes 0: a question
  return outcome(::adjtimex(&state));
}

int compare_processes(const Args&) {
  const pid_t self = ::getpid();
  return outcome(::syscall(SYS_kcmp, self, self, KCMP_FILES, 0, 0));
}

int watch_files(const Args&) {
  return outcome(::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY));
}

}  // namespace

std::vector<Act> kernel_acts() {
  return {{"keyctl", join_keyring},
          {"add-key", add_a_key},
          {"request-key", request_a_key},
          {"bpf", bpf_map},
          {"perf", perf_event},
          {"userfaultfd", user_fault},
          {"io-uring", io_uring},
          {"memfd-secret", memfd_secret},
          {"name-to-handle", name_to_handle},
          {"open-by-handle", open_by_handle},
          {"sethostname", set_host_name},
          {"personality", no_randomisation},
          {"read-ldt", read_ldt},
          {"syslog", kernel_log},
          {"adjtimex", read_clock_state},
          {"kcmp", compare_processes},
          {"fanotify", watch_files}};
}

}  // namespace box_probe
