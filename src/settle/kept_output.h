// Which bytes of an endless stream are kept: its head, and the last of what follows. Memory never exceeds the
// tail's bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cofferdam::settle {

class KeptOutput {
 public:
  KeptOutput(std::size_t head, std::size_t tail) : head_(head), tail_(tail) {}
  // The part of `bytes` that belongs to the head; what follows it displaces the oldest of the tail.
  std::string_view take(std::string_view bytes);
  std::string tail() const;  // in order
  std::uint64_t taken() const { return taken_; }
  std::uint64_t dropped() const { return taken_ - in_head_ - ring_.size(); }  // neither head nor tail

 private:
  std::size_t head_;
  std::size_t tail_;
  std::uint64_t taken_ = 0;
  std::uint64_t in_head_ = 0;
  std::string ring_;       // grows up to the bound, then is overwritten
  std::size_t start_ = 0;  // of the oldest byte, once it is full
};

}  // namespace cofferdam::settle
