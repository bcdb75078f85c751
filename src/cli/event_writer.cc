#include "cli/event_writer.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "base/io.h"
#include "contract/event.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kAtATime = 64;

}  // namespace

EventWriter::EventWriter(std::string ledger_path, std::string attempt_id, int fd)
    : ledger_path_(std::move(ledger_path)), attempt_id_(std::move(attempt_id)), fd_(fd) {
  // Signals are for the main thread, which takes them as requests to cancel.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void EventWriter::reached(std::uint64_t seq) {
  {
    const std::scoped_lock lock(mutex_);
    target_ = seq;
  }
  changed_.notify_one();
}

void EventWriter::finish() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EventWriter::run() {
  std::optional<ledger::Ledger> ledger;  // of this thread
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ending_ || target_ > written_; });
    const std::uint64_t target = target_;
    const bool last = ending_;
    if (target == written_) return;
    lock.unlock();
    if (!write_to(target, &ledger)) return;
    if (written_ == target) continue;
    if (last) return;  // the rest is in the ledger: `cofferdam log`
    lock.lock();
    changed_.wait(lock, [this, target] { return ending_ || target_ > target; });
  }
}

// False when there is nobody to write to, or nothing to write from: the account is in the ledger all the
// same.
bool EventWriter::write_to(std::uint64_t target, std::optional<ledger::Ledger>* ledger) {
  if (!ledger->has_value()) {
    auto opened = ledger::Ledger::open(ledger_path_);
    if (!opened) return true;  // again with the next event, or in finish()
    ledger->emplace(*std::move(opened));
  }
  while (written_ < target) {
    auto events = (*ledger)->events_after(attempt_id_, written_, kAtATime);
    if (!events || events->empty()) return true;
    std::string lines;
    for (const contract::Event& event : *events) {
      if (event.seq > target) break;
      lines += contract::encode_event(event) + "\n";
      written_ = event.seq;
    }
    if (!write_all(fd_, lines)) return false;
  }
  return true;
}

}  // namespace cofferdam::cli
