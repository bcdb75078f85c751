// Writes an attempt's events to a reader that may be slow, or stall: from the ledger, in a thread of its own,
// so that nothing waits for the reader and nothing has to be held for it in memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ledger/ledger.h"

namespace cofferdam::cli {

class EventWriter {
 public:
  // Starts the thread, with every signal blocked in it. Writes nothing before reached().
  EventWriter(std::string ledger_path, std::string attempt_id, int fd);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  ~EventWriter() { finish(); }

  // Events up to this number are in the ledger. Never blocks for longer than it takes to say so.
  void reached(std::uint64_t seq);
  // Writes what is left and ends the thread. Waits for the reader, however long it takes; not for one that
  // has gone away.
  void finish();

 private:
  void run();
  bool write_to(std::uint64_t target, std::optional<ledger::Ledger>* ledger);

  std::string ledger_path_;
  std::string attempt_id_;
  int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t target_ = 0;  // guarded by mutex_
  bool ending_ = false;       // guarded by mutex_
  std::uint64_t written_ = 0;
  std::thread thread_;
};

}  // namespace cofferdam::cli
