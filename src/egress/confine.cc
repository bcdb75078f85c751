#include "egress/confine.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "egress/landlock_abi.h"

namespace cofferdam::egress {
namespace {

// 128 MiB of request bodies, parsed: a hostile one takes several times its size.
constexpr rlim_t kMaxMemory = 3ULL << 30U;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kBoundMemory = false;  // the sanitizer reserves terabytes of addresses
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kBoundMemory = false;
#else
constexpr bool kBoundMemory = true;
#endif
#else
constexpr bool kBoundMemory = true;
#endif

Status bound(int resource, rlim_t value, const char* name) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return sys_error(name, errno);
  if (limit.rlim_max > value) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(resource, &limit) != 0) return sys_error(name, errno);
  return {};
}

Status set_bounds(const Confines& confines) {
  TRY_VOID(bound(RLIMIT_NOFILE, confines.descriptors, "RLIMIT_NOFILE"));
  TRY_VOID(bound(RLIMIT_FSIZE, confines.file_bytes, "RLIMIT_FSIZE"));
  TRY_VOID(bound(RLIMIT_NPROC, 0, "RLIMIT_NPROC"));
  if (kBoundMemory) TRY_VOID(bound(RLIMIT_AS, kMaxMemory, "RLIMIT_AS"));
  return {};
}

Status drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  if (::syscall(SYS_capset, &header, none) != 0) return sys_error("capset", errno);
  return {};
}

Result<Confinement> enter_landlock(const std::vector<std::uint16_t>& ports) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, landlock::kCreateVersion);
  if (version <= 0) return Confinement{};
  const int abi = static_cast<int>(version);
  landlock::RulesetAttr attr{landlock::all_file_rights(abi), landlock::all_net_rights(abi),
                             landlock::all_scopes(abi)};
  UniqueFd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, landlock::attr_size(abi), 0U)));
  if (!rules.valid()) return sys_error("landlock_create_ruleset", errno);
  Confinement out{abi, landlock::all_net_rights(abi) != 0};
  for (std::uint16_t port : ports) {
    if (!out.ports_limited) break;
    landlock::NetPortAttr rule{landlock::kNetConnectTcp, port};
    if (::syscall(SYS_landlock_add_rule, rules.get(), landlock::kRuleNetPort, &rule, 0U) != 0) {
      return sys_error("landlock_add_rule", errno);
    }
  }
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0U) != 0) {
    return sys_error("landlock_restrict_self", errno);
  }
  return out;
}

Status load_filter(const std::string& filter) {
  std::vector<sock_filter> program(filter.size() / sizeof(sock_filter));
  if (program.empty() || filter.size() % sizeof(sock_filter) != 0 || program.size() > BPF_MAXINSNS) {
    return make_error(Code::protocol, "the gateway's system-call filter is malformed");
  }
  std::memcpy(program.data(), filter.data(), filter.size());
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) != 0) return sys_error("PR_SET_SECCOMP", errno);
  return {};
}

}  // namespace

Status become(const UserIds& user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0) {
    return sys_error("the gateway cannot become an unprivileged user", errno);
  }
  // The change of user cleared the one, and may have set the other: proc(5), fs.suid_dumpable.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return sys_error("PR_SET_PDEATHSIG", errno);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("PR_SET_DUMPABLE", errno);
  return {};
}

Result<Confinement> confine(const Confines& confines) {
  ::signal(SIGXFSZ, SIG_IGN);  // EFBIG instead
  TRY_VOID(set_bounds(confines));
  TRY_VOID(drop_capabilities());
  TRY(Confinement out, enter_landlock(confines.ports));
  TRY_VOID(load_filter(confines.filter));
  return out;
}

}  // namespace cofferdam::egress
