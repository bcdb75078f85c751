// log: the events of one attempt, also while another process adds to them.
#include <poll.h>
#include <unistd.h>

#include "attempt/lock.h"
#include "cli/log_text.h"
#include "cli/records.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kEventsAtATime = 64;  // each may have 8 MiB
constexpr int kPollMs = 100;
constexpr int kRoundsPerLook = 20;  // at the lock of the attempt's supervisor

// Whoever read us has gone: poll(2) says so for a pipe or a socket, whatever we ask for.
bool reader_has_gone() {
  struct pollfd out {
    STDOUT_FILENO, 0, 0
  };
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// Prints one after the other; false when nobody reads any more, which is no error.
class LogPrinter {
 public:
  LogPrinter(ledger::Ledger* ledger, const LogOptions& options) : ledger_(ledger), options_(options) {}

  Result<bool> print_new() {
    for (;;) {
      TRY(const std::vector<contract::Event> events,
          ledger_->events_after(options_.id, last_, kEventsAtATime));
      std::string text;
      for (const contract::Event& event : events) {
        text += options_.json ? contract::encode_event(event) + "\n" : log_line(event);
        last_ = event.seq;
      }
      TRY(const bool read, print(text));
      if (!read || events.size() < kEventsAtATime) return read;
    }
  }

  Result<bool> print(const std::string& text) {
    if (text.empty()) return true;
    Status printed = print_out(text);
    if (printed) return true;
    if (reader_has_gone()) return false;
    return std::move(printed).error();
  }

 private:
  ledger::Ledger* ledger_;
  const LogOptions& options_;
  std::uint64_t last_ = 0;
};

// Waits until another process has written to the ledger. False when nobody reads us any more. An attempt that
// loses its supervisor meanwhile would never write again: it is recovered.
Result<bool> wait_for_change(Records& records, const std::string& id, std::int64_t seen) {
  for (int round = 1;; ++round) {
    struct pollfd out {
      STDOUT_FILENO, 0, 0
    };
    if (::poll(&out, 1, kPollMs) == 1) return false;
    TRY(const std::int64_t version, records.ledger.data_version());
    if (version != seen) return true;
    if (round % kRoundsPerLook != 0) continue;
    TRY(const bool held, attempt::AttemptLock::is_held(records.state_dir, id));
    if (!held) sweep_orphans();
  }
}

}  // namespace

Result<int> log_verb(const LogOptions& options) {
  TRY(Records records, records_for(options.id));
  LogPrinter printer(&records.ledger, options);
  for (;;) {
    TRY(const std::int64_t version, records.ledger.data_version());
    // The row first: when it has its result, no event comes behind what is read now.
    TRY(const std::optional<ledger::AttemptRecord> record, records.ledger.find(options.id));
    if (!record) return missing_attempt(records, options.id);
    TRY(const bool read, printer.print_new());
    if (!read) return 0;
    if (record->attempt.finished && !options.json) {
      TRY_VOID(printer.print(outcome_line(record->attempt)));
    }
    if (record->attempt.finished || !options.follow) return 0;
    TRY(const bool changed, wait_for_change(records, options.id, version));
    if (!changed) return 0;
  }
}

}  // namespace cofferdam::cli
