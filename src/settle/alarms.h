// What the clock alone makes happen to a running attempt, and when. Pure: times are given, nothing is read.
#pragma once

#include <chrono>
#include <optional>

namespace cofferdam::settle {

using SteadyTime = std::chrono::steady_clock::time_point;

// Which alarm has come. The first four are causes; the last two are for an end that was asked for and did not
// come.
enum class Alarm {
  none,
  deadline,      // the total deadline
  first_output,  // nothing was printed since the start
  idle,          // neither output nor an answer of the vendor's
  unfinished,    // the agent has answered and then did neither anything nor exit
  kill,          // init has not ended the box: its PID 1 is to be killed
  lost,          // nor has that
};

struct Bounds {
  SteadyTime deadline;
  std::optional<std::chrono::milliseconds> first_output = {};  // from the start of the program
  std::optional<std::chrono::milliseconds> idle = {};          // from the start, or the last sign of life
  std::chrono::milliseconds after_answer{0};  // likewise, once the agent has given its final answer
  std::chrono::milliseconds kill{0};          // from the moment at which the end was asked for
  std::chrono::milliseconds lost{0};          // from the kill
};

class Alarms {
 public:
  explicit Alarms(const Bounds& bounds) : bounds_(bounds) {}

  void started(SteadyTime at);   // the program runs: the inner deadlines begin
  void printed(SteadyTime at);   // a byte on standard output or standard error
  void active(SteadyTime at);    // another sign of life: a request to the vendor was answered
  void answered(SteadyTime at);  // the agent's final answer has been read
  // The end has been asked for, or the program has ended: no deadline comes any more. The first call counts.
  void ending(SteadyTime at);

  // When something comes next.
  SteadyTime next() const;
  // The alarm that has come by `at`: of several the one whose time was first. `kill` and `lost` come once
  // each; a cause stays until ending().
  Alarm take(SteadyTime at);

 private:
  struct Due {
    Alarm alarm = Alarm::none;
    SteadyTime at = SteadyTime::max();
  };
  Due due() const;

  Bounds bounds_;
  std::optional<SteadyTime> started_;
  std::optional<SteadyTime> last_sign_;
  bool printed_ = false;
  bool answered_ = false;
  std::optional<SteadyTime> ending_;
  std::optional<SteadyTime> killed_;
  bool lost_ = false;
};

}  // namespace cofferdam::settle
