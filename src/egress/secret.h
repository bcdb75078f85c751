// Bytes that must not outlive their use: wiped by the destructor, kept out of swap where the kernel allows
// it.
#pragma once

#include <string>
#include <string_view>

namespace cofferdam::egress {

// Move-only, fixed in size: it never reallocates, so no forgotten copy is left on the heap.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view bytes);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(); }

  std::string_view view() const { return {data_, size_}; }
  bool empty() const { return size_ == 0; }
  void wipe();

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

// Overwrites in a way that the compiler keeps: OPENSSL_cleanse(3).
void wipe_string(std::string* text);

}  // namespace cofferdam::egress
