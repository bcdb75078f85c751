// SHA-256 (FIPS 180-4) by libcrypto.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace cofferdam {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case hexadecimal digits

// The same of what comes in pieces. Move-only; not thread safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();
  void update(std::string_view bytes);
  std::string hex();  // once: nothing can be added behind it

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cofferdam
