#include "egress/secret.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace cofferdam::egress {

Secret::Secret(std::string_view bytes)
    : data_(new char[std::max<std::size_t>(bytes.size(), 1)]), size_(bytes.size()) {
  // Best effort: RLIMIT_MEMLOCK may be 0. The process is not dumpable either way.
  (void)::mlock(data_, std::max<std::size_t>(size_, 1));
  std::copy(bytes.begin(), bytes.end(), data_);
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void Secret::wipe() {
  if (data_ == nullptr) return;
  // Not unlocked: the page may hold another secret, and mlock(2) does not nest.
  OPENSSL_cleanse(data_, size_);
  delete[] data_;
  data_ = nullptr;
  size_ = 0;
}

void wipe_string(std::string* text) {
  OPENSSL_cleanse(text->data(), text->size());
  text->clear();
}

}  // namespace cofferdam::egress
