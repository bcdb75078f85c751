// Recovery: closes the account of attempts whose supervisor has gone, keeps what the agent left, and removes
// everything else that was theirs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/result.h"

namespace cofferdam::attempt {

struct RecoveryReport {
  std::vector<contract::ResultRecord> closed;  // attempts that have their result now
  std::vector<std::string> published;          // refs of changes whose publication had failed before
  std::vector<Error> errors;                   // what could not be closed; it stays for the next time
};

// Every attempt of the state folder that nobody works on any more. Any number of processes may do this at
// once: each attempt is closed by one of them. `retry_publications` also tries again what could not be
// published before.
Result<RecoveryReport> recover(const Host& host, bool retry_publications);

// One attempt. False when somebody works on it, or when it has its result already.
Result<bool> recover_one(const Host& host, const std::string& attempt_id);

// Whether recover() would have something to do: cheap, for verbs that look before they do their own work.
Result<bool> has_orphans(const std::string& state_dir);

}  // namespace cofferdam::attempt
