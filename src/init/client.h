// The host's side of cofferdam-init: starts it with a plan and decodes what it says. Used by the stages that
// own an init process: workspace (keeper) and sandbox (boxes).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "init/plan.h"
#include "init/protocol.h"

namespace cofferdam::init_client {

struct InitOptions {
  std::string program;            // path of cofferdam-init
  std::optional<UserIds> run_as;  // set when we are root: the host's uid 0 is never part of a box
  std::vector<FdMapping> fds;     // beside the control socket and the plan
  std::vector<int> join_fds;      // SpawnOptions::join_fds
  int group_fd = -1;              // SpawnOptions::group_fd
  bool die_with_parent = true;
};

struct InitProcess {
  Child child;
  UniqueFd control;
};

Result<InitProcess> start_init(const InitOptions& options, const plan::Plan& plan);

// One message of init; every byte of it may have been forged by a box that broke out of its program, so it is
// bounded and decoded strictly.
struct InitMessage {
  char kind = 0;  // 0: init closed the socket
  std::vector<std::string> fields;
  std::vector<UniqueFd> fds;
};
Result<InitMessage> receive(int control);
Status send_order(int control, char order);
// The Error that an E message stands for.
Error setup_error(const std::string& box, const InitMessage& message);
// Decimal text without sign, at most 2^63-1; nullopt otherwise.
std::optional<std::uint64_t> parse_number(const std::string& text);

}  // namespace cofferdam::init_client
