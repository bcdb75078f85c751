// Where a request can come from while an attempt runs. To cancel: signals, `cofferdam cancel`, and the
// orchestrator's input stream; for a checkpoint: `cofferdam checkpoint` and that stream. A request is not a
// termination: it is recorded, and the settlement decides.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "attempt/account.h"
#include "attempt/run.h"
#include "base/fd.h"
#include "base/result.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

class CancelSources {
 public:
  using Handler = std::function<void(const std::string& by, const std::string& reason)>;

  // Blocks SIGINT, SIGTERM and SIGHUP for this process and listens on `<attempt_dir>/control`; both end with
  // this object, and with it those signals that have come meanwhile. `controls` is borrowed.
  static Result<CancelSources> create(const std::string& attempt_dir, const Controls& controls);
  // Without the control socket: of somebody who only looks on.
  static Result<CancelSources> watch(const Controls& controls);
  CancelSources(CancelSources&&) = default;
  CancelSources& operator=(CancelSources&&) = delete;
  ~CancelSources();

  // Adds what to poll for; handle() is then called with the same entries.
  void add_to(std::vector<pollfd>* entries) const;
  void handle(const std::vector<pollfd>& entries, const Handler& handler);
  // Who takes requests for a checkpoint, and answers on `peer` (not valid when there is nobody to answer).
  // Without it they are refused.
  using CheckpointHandler =
      std::function<void(const std::string& by, const std::string& reason, UniqueFd peer)>;
  void on_checkpoint(CheckpointHandler handler) { on_checkpoint_ = std::move(handler); }
  // For the boxes of ours: requests are recorded; with `stop` they also end the box.
  sandbox::Interrupt interrupt(Account* account, bool stop);
  // Until `fd` is readable. Code::conflict at a request to cancel, which is recorded; Code::timeout.
  Status wait_for(Account* account, int fd, std::chrono::milliseconds limit);

 private:
  CancelSources(UniqueFd signals, UniqueFd listener, std::string socket_path, const Controls* controls);
  void read_signal(const Handler& handler);
  void accept_peer();
  void read_peer(const Handler& handler);
  void read_stream(const Handler& handler);
  void take_lines(const Handler& handler);

  UniqueFd signals_;
  UniqueFd listener_;
  UniqueFd peer_;  // one at a time: the next waits in the backlog
  std::string peer_text_;
  CheckpointHandler on_checkpoint_;
  std::string socket_path_;
  const Controls* controls_;
  int stream_ = -1;  // borrowed; -1 once it has ended
  std::string stream_text_;
};

}  // namespace cofferdam::attempt
