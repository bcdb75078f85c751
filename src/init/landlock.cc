#include "init/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "init/sys.h"

namespace cofferdam::init {
namespace {

// landlock(7) and linux/landlock.h; Debian 12's headers end with ABI 2.
struct RulesetAttributes {
  std::uint64_t handled_files = 0;
  std::uint64_t handled_network = 0;  // since ABI 4; none: test suites start servers
  std::uint64_t scoped = 0;           // since ABI 6
};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};
constexpr std::uint64_t kScopeAbstractSockets = 1U << 0U;
constexpr std::uint64_t kScopeSignals = 1U << 1U;
constexpr unsigned kAskVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
constexpr int kRulePathBeneath = 1;
constexpr unsigned kFirstUsed = 2;
constexpr int kOutOfTheWay = 100;

std::uint64_t known_files(unsigned abi) {
  std::uint64_t known = plan::kLandlockAbi2;
  if (abi >= 3) known |= plan::kLandlockTruncate;
  if (abi >= 5) known |= plan::kLandlockIoctlDevice;
  return known;
}

// An older kernel refuses a longer structure only if the rest is not zero, but why ask.
std::size_t size_for(unsigned abi) {
  if (abi >= 6) return sizeof(RulesetAttributes);
  return abi >= 4 ? offsetof(RulesetAttributes, scoped) : offsetof(RulesetAttributes, handled_network);
}

}  // namespace

unsigned landlock_abi() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<unsigned>(version) : 0;
}

int make_landlock(const plan::Plan& plan) {
  const unsigned abi = landlock_abi();
  // Without no_new_privs, which only the gate leaves out, no process of the box may enter the rules.
  const bool possible = has_layer(plan, plan::Layer::no_new_privs) && abi >= kFirstUsed;
  if (!has_layer(plan, plan::Layer::landlock) || !possible) return -1;
  RulesetAttributes attributes;
  attributes.handled_files = known_files(abi);
  if (abi >= 6) attributes.scoped = kScopeAbstractSockets | kScopeSignals;
  const int made = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size_for(abi), 0));
  check(made >= 0, "make the Landlock rules");
  for (const plan::PathRule& rule : plan.landlock) {
    const std::uint64_t allowed = rule.access & attributes.handled_files;
    if (allowed == 0) continue;  // of newer kernels only; ENOMSG: landlock_add_rule(2)
    const int place = ::open(rule.path.c_str(), O_PATH | O_CLOEXEC);
    check(place >= 0, "open what a Landlock rule names");
    const PathBeneath beneath{allowed, place};
    check(::syscall(SYS_landlock_add_rule, made, kRulePathBeneath, &beneath, 0) == 0, "add a Landlock rule");
    ::close(place);
  }
  const int ruleset = ::fcntl(made, F_DUPFD_CLOEXEC, kOutOfTheWay);
  check(ruleset >= 0, "dup");
  ::close(made);
  return ruleset;
}

bool enter_landlock(int ruleset) {
  return ruleset < 0 || ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
}

}  // namespace cofferdam::init
