#include "attempt/follow.h"

#include <poll.h>

#include <vector>

#include "attempt/cancel.h"
#include "attempt/control.h"
#include "attempt/lock.h"
#include "attempt/recover.h"
#include "ledger/ledger.h"

namespace cofferdam::attempt {
namespace {

// Between two looks at the ledger. What we wait for is another process's transaction, which nothing
// announces.
constexpr int kLookMs = 100;
constexpr std::size_t kAtATime = 64;

class Follower {
 public:
  Follower(const Host& host, std::string id, const Controls& controls, ledger::Ledger ledger)
      : host_(host), id_(std::move(id)), controls_(controls), ledger_(std::move(ledger)) {}

  Result<contract::ResultRecord> run() {
    // With sources of our own: the attempt's are its supervisor's.
    TRY(CancelSources cancel, CancelSources::watch(controls_));
    while (true) {
      TRY(const auto record, ledger_.find(id_));
      if (!record.has_value()) return make_error(Code::not_found, "the attempt was pruned meanwhile");
      TRY_VOID(tell());
      if (record->result.has_value()) return contract::decode_result(*record->result);
      TRY(const auto recovered, recover_one(host_, id_));
      if (recovered) continue;
      std::vector<pollfd> entries;
      cancel.add_to(&entries);
      ::poll(entries.data(), entries.size(), kLookMs);
      cancel.handle(entries,
                    [this](const std::string& /*by*/, const std::string& reason) { pass_on(reason); });
    }
  }

 private:
  Status tell() {
    while (true) {
      TRY(const std::vector<contract::Event> events, ledger_.events_after(id_, told_, kAtATime));
      for (const contract::Event& event : events) {
        told_ = event.seq;
        if (controls_.on_event) controls_.on_event(event);
      }
      if (events.size() < kAtATime) return {};
    }
  }

  // A supervisor that is just ending cannot take it, and need not.
  void pass_on(const std::string& reason) {
    (void)request_cancel(folder_of(host_.state_dir, id_), reason).has_value();
  }

  const Host& host_;
  std::string id_;
  const Controls& controls_;
  ledger::Ledger ledger_;
  std::uint64_t told_ = 0;
};

}  // namespace

Result<contract::ResultRecord> follow(const Host& host, const std::string& attempt_id,
                                      const Controls& controls) {
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(host.state_dir)));
  return Follower(host, attempt_id, controls, std::move(ledger)).run();
}

}  // namespace cofferdam::attempt
