// Bodies on disk, for debugging and only when the user asks: what a box sends and what the vendor answers is
// the repository's content and the model's words. Credentials are taken out before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "egress/gateway.h"
#include "egress/secret.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxCapturedBody = 1U << 20U;     // the rest of a body is only counted
inline constexpr std::uint64_t kMaxCaptureFile = 256U << 20U;  // nothing is written beyond it

// One body as it passes: its head and its size.
class CapturedBody {
 public:
  // Room for a credential more than is shown: one that lies across the end is still recognised.
  void add(std::string_view bytes);
  std::uint64_t bytes() const { return bytes_; }
  // Without any of `secrets`, each also as it stands in a JSON string.
  std::string shown(const std::vector<std::string_view>& secrets) const;

 private:
  std::string head_;
  std::uint64_t bytes_ = 0;
};

struct CapturedExchange {
  CapturedBody request;  // as forwarded; of a denied one, as the box sent it
  CapturedBody answer;   // as the box got it
};

// One line of JSON for each exchange. `secrets` are views that live as long as the call.
std::string encode_capture(const GatewayEvent& event, const CapturedExchange& exchange,
                           const std::vector<std::string_view>& secrets);

// Appends to a file of the supervisor's; one thread. An invalid descriptor captures nothing.
class CaptureFile {
 public:
  CaptureFile() = default;
  explicit CaptureFile(UniqueFd file) : file_(std::move(file)) {}
  bool enabled() const { return file_.valid(); }
  // Closes the file when it is full or cannot be written: a debugging aid never ends an attempt.
  void append(const std::string& line);

 private:
  UniqueFd file_;
};

}  // namespace cofferdam::egress
