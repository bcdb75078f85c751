// The client's side of a running attempt's control socket.
#pragma once

#include <string>

#include "base/result.h"

namespace cofferdam::attempt {

// Sends {"cancel":{"reason":...}} to the supervisor that owns `attempt_dir` and waits for its
// {"ok":true}. Code::conflict when nobody listens there (any more).
Status request_cancel(const std::string& attempt_dir, const std::string& reason);

// Asks it for a checkpoint, and waits until that is made. `commit` is empty when nothing is new since the
// last one. Code::denied with the supervisor's reason when there is none.
struct CheckpointMade {
  std::string commit;
  std::string tree;
};
Result<CheckpointMade> request_checkpoint(const std::string& attempt_dir, const std::string& reason);

}  // namespace cofferdam::attempt
