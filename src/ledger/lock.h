// A lock on a file that the kernel gives back when its holder dies, waited for with a bound.
#pragma once

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::ledger {

// Of one thread; each object of its own excludes every other, in this process and in others.
class FileLock {
 public:
  explicit FileLock(std::string path) : path_(std::move(path)) {}

  // Held until the object goes.
  class Held {
   public:
    explicit Held(int fd) : fd_(fd) {}
    Held(Held&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    int fd_;
  };
  // Code::timeout after `bound`, naming the process that holds it.
  Result<Held> take(std::chrono::milliseconds bound);

 private:
  Error too_long(std::chrono::milliseconds bound) const;
  std::string path_;
  UniqueFd fd_;  // opened when first taken: who only reads leaves no file behind
};

}  // namespace cofferdam::ledger
