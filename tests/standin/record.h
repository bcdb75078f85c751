// The record: one line of JSON per request, in the order in which the answers began.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "vendor_api.h"

namespace cofferdam::standin {

// At most this much of a body is kept.
inline constexpr std::size_t kMaxRecordedBody = 4U << 20U;

// Thread safe: every connection writes to the same recorder.
class Recorder {
 public:
  // An empty path records nothing. The file is made anew.
  static Result<Recorder> open(const std::string& path);
  Recorder(Recorder&& other) noexcept : fd_(std::move(other.fd_)) {}

  // `notes`: further members, already encoded. `status` 0: no answer was given.
  void write(const Request& request, unsigned status, const std::map<std::string, std::string>& notes);

 private:
  explicit Recorder(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::mutex mutex_;
};

}  // namespace cofferdam::standin
