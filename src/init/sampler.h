#pragma once

#include <cstdint>

#include "init/plan.h"

namespace cofferdam::init {

// What the box's processes take of memory and process ids, and whether its storages are full: looked at a few
// times a second from PID 1, which sees nobody else. Sampled, so what is over a limit for a shorter time is
// not seen. Nothing is allocated, however many processes there are.
class Sampler {
 public:
  // Does nothing when the plan has no limit. Called when the program runs.
  void start(const plan::Plan& plan);
  int timer() const { return timer_; }  // readable: look(); -1: not watched
  // One look. True when a limit is passed for the first time; that has then been reported, and the box is to
  // end.
  bool look();
  // Reports what is full, each kind once.
  void look_at_storage();

  std::uint64_t peak_bytes() const { return peak_bytes_; }
  std::uint64_t peak_pids() const { return peak_pids_; }

 private:
  struct Seen {
    std::uint64_t bytes = 0;
    std::uint64_t pids = 0;
  };
  template <typename F>
  void each_process(F act);
  Seen count();
  std::uint64_t count_proportionally();
  bool judge();
  void arm(std::uint64_t after_us);

  std::uint64_t memory_limit_ = 0;
  std::uint64_t pids_limit_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peak_pids_ = 0;
  int timer_ = -1;
  int proc_ = -1;
  bool work_ = false;  // the work tree is the attempt's own storage
  bool reported_ = false;
  bool work_bytes_full_ = false;
  bool work_inodes_full_ = false;
  bool scratch_full_ = false;
};

}  // namespace cofferdam::init
