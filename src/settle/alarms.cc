#include "settle/alarms.h"

#include <algorithm>

namespace cofferdam::settle {

void Alarms::started(SteadyTime at) {
  if (started_.has_value()) return;
  started_ = at;
  active(at);
}

void Alarms::printed(SteadyTime at) {
  printed_ = true;
  active(at);
}

// Times come from one clock, but not always in order: what was noted last does not turn it back.
void Alarms::active(SteadyTime at) {
  last_sign_ = std::max(last_sign_.value_or(at), at);
}

void Alarms::answered(SteadyTime at) {
  answered_ = true;
  active(at);
}

void Alarms::ending(SteadyTime at) {
  if (!ending_.has_value()) ending_ = at;
}

Alarms::Due Alarms::due() const {
  if (killed_.has_value()) return lost_ ? Due{} : Due{Alarm::lost, *killed_ + bounds_.lost};
  if (ending_.has_value()) return {Alarm::kill, *ending_ + bounds_.kill};
  Due first{Alarm::deadline, bounds_.deadline};
  const auto consider = [&first](Alarm alarm, SteadyTime at) {
    if (at < first.at) first = {alarm, at};
  };
  if (!started_.has_value()) return first;
  if (bounds_.first_output.has_value() && !printed_) {
    consider(Alarm::first_output, *started_ + *bounds_.first_output);
  }
  if (answered_) {
    consider(Alarm::unfinished,
             *last_sign_ + std::min(bounds_.after_answer, bounds_.idle.value_or(bounds_.after_answer)));
  } else if (bounds_.idle.has_value()) {
    consider(Alarm::idle, *last_sign_ + *bounds_.idle);
  }
  return first;
}

SteadyTime Alarms::next() const {
  return due().at;
}

Alarm Alarms::take(SteadyTime at) {
  const Due one = due();
  if (one.alarm == Alarm::none || at < one.at) return Alarm::none;
  if (one.alarm == Alarm::kill) killed_ = at;
  if (one.alarm == Alarm::lost) lost_ = true;
  return one.alarm;
}

}  // namespace cofferdam::settle
