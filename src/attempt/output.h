// What the program prints on one of its streams: read in pieces, bounded, and kept as head and tail in files
// of the attempt. Memory is bounded whatever is printed: a piece and the tail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "settle/kept_output.h"

namespace cofferdam::attempt {

inline constexpr std::size_t kPieceBytes = 64U << 10U;
inline constexpr std::size_t kHeadBytes = 1U << 20U;
inline constexpr std::size_t kTailBytes = 1U << 20U;

class OutputStream {
 public:
  // The pipe is read without blocking; `file` is made for the head, and `file`.tail at the end, if there is
  // more.
  static Result<OutputStream> open(UniqueFd pipe, const std::string& file, std::uint64_t limit);

  int fd() const { return pipe_.get(); }  // -1 once the stream has ended
  bool open() const { return pipe_.valid(); }

  struct Piece {
    std::string bytes;  // up to the limit; what is beyond it is only counted
    bool would_block = false;
    bool over = false;  // more than the limit has been printed
  };
  // One read(2). At the end of the stream, and on an error, it is closed.
  Piece read();
  // Stops reading, whether or not the stream has ended, and writes the tail.
  void close();

  std::uint64_t printed() const { return printed_; }
  std::uint64_t dropped() const { return printed_ - kept_.taken() + kept_.dropped() + unwritten_; }

 private:
  OutputStream(UniqueFd pipe, UniqueFd file, std::string tail_path, std::uint64_t limit)
      : pipe_(std::move(pipe)), file_(std::move(file)), tail_path_(std::move(tail_path)), limit_(limit) {}
  UniqueFd pipe_;
  UniqueFd file_;
  std::string tail_path_;
  std::uint64_t limit_;
  settle::KeptOutput kept_{kHeadBytes, kTailBytes};
  std::uint64_t printed_ = 0;
  std::uint64_t unwritten_ = 0;  // the disk was full
};

}  // namespace cofferdam::attempt
