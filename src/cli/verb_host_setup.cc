// host-setup: control groups (docs/limits.md) and slots (docs/workspace.md) for a user who is not root.
#include <fmt/core.h>
#include <pwd.h>

#include "attempt/host_setup.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "contract/rules.h"

namespace cofferdam::cli {
namespace {

Result<UserIds> find_user(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  if (entry != nullptr && entry->pw_uid != 0) return UserIds{entry->pw_uid, entry->pw_gid};
  if (entry != nullptr) {
    return make_error(Code::usage,
                      "root needs no host-setup: its attempts get a disk and control groups of their own",
                      "name another user with --user");
  }
  // A number, for a user whom no list has: its group is of the same number.
  std::uint64_t number = 0;
  for (const char digit : name) {
    if (digit < '0' || digit > '9' || number > 400'000'000) number = UINT64_MAX / 16;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (name.empty() || number == 0 || number > 4'000'000'000) {
    return make_error(Code::usage, "no user " + printable(name, 80), "name one with --user");
  }
  return UserIds{static_cast<uid_t>(number), static_cast<gid_t>(number)};
}

}  // namespace

Result<int> host_setup_verb(const HostSetupOptions& options) {
  TRY(const UserIds owner, find_user(options.user));
  if (!contract::is_attempt_id(options.cgroup)) {
    return make_error(Code::usage, "--cgroup " + printable(options.cgroup, 80) + " is no name of a subtree",
                      "use 1 to 64 of a-z, 0-9 and -");
  }
  if (options.remove) {
    TRY(const unsigned removed, attempt::remove_host_setup(options.dir, options.cgroup, owner.uid));
    TRY_VOID(print_out(fmt::format("{} slots removed\n", removed)));
    return 0;
  }
  // One does not need the other: on a host without control groups there can be slots.
  const Status groups = attempt::hand_over_groups(options.cgroup, owner);
  if (!groups && (options.slots == 0 || groups.error().code != Code::unsupported_host)) return groups.error();
  TRY_VOID(print_out(groups ? fmt::format("control groups {} handed to uid {}\n", options.cgroup, owner.uid)
                            : groups.error().line() + "\n"));
  if (options.slots == 0) return 0;
  TRY(const unsigned made,
      attempt::set_up_host({options.dir, owner, options.slots, options.bytes, options.inodes}));
  TRY_VOID(print_out(fmt::format("{} slots made, {} of {} bytes and {} inodes ready\n", made, options.slots,
                                 options.bytes, options.inodes)));
  return 0;
}

}  // namespace cofferdam::cli
