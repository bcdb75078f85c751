#include "attempt/admission.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace cofferdam::attempt {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Nobody wakes a waiting attempt: the ledger is looked at.
constexpr std::chrono::milliseconds kRound{200};

// Waits for a round or a request to cancel; true when there was one.
Result<bool> cancelled_within(const QueueInput& in, std::chrono::milliseconds limit) {
  bool any = false;
  const CancelSources::Handler handler = [&](const std::string& by, const std::string& reason) {
    in.account.cancel(by, reason);
    any = true;
  };
  in.cancel.handle({}, handler);  // what was read already
  if (any) return true;
  std::vector<pollfd> entries;
  in.cancel.add_to(&entries);
  if (::poll(entries.data(), entries.size(), static_cast<int>(limit.count())) < 0 && errno != EINTR)
    return sys_error("poll", errno);
  in.cancel.handle(entries, handler);
  return any;
}

Error waited_in_vain(const QueueInput& in) {
  const std::string what =
      fmt::format("the capacity was taken for {} ms, as long as the attempt may last", in.longest.count());
  in.account.settlement().end(contract::Outcome::refused, "capacity", what, now());
  return make_error(Code::exhausted, what);
}

}  // namespace

Status wait_for_turn(const QueueInput& in) {
  const SteadyClock::time_point end = SteadyClock::now() + in.longest;
  while (in.account.waiting()) {
    in.sweep();
    if (Status looked = in.account.leave_queue(in.capacity); !looked) {
      if (looked.error().code == Code::conflict) {
        in.account.settlement().end(contract::Outcome::refused, "stale-context", looked.error().line(),
                                    now());
      }
      return looked;
    }
    if (!in.account.waiting()) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    if (left.count() <= 0) return waited_in_vain(in);
    TRY(const bool cancelled, cancelled_within(in, std::min(left, kRound)));
    if (cancelled) return make_error(Code::conflict, "cancelled while it waited in the queue");
  }
  return {};
}

}  // namespace cofferdam::attempt
