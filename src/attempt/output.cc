#include "attempt/output.h"

#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "base/io.h"

namespace cofferdam::attempt {
namespace {

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL;

}  // namespace

Result<OutputStream> OutputStream::open(UniqueFd pipe, const std::string& file, std::uint64_t limit) {
  TRY_VOID(set_nonblocking(pipe.get(), true));
  TRY(UniqueFd head, open_file(file, kNewFile));
  return OutputStream(std::move(pipe), std::move(head), file + ".tail", limit);
}

OutputStream::Piece OutputStream::read() {
  Piece piece;
  auto bytes = read_some(pipe_.get(), kPieceBytes, &piece.would_block);
  if (piece.would_block) return piece;
  if (!bytes || bytes->empty()) {
    pipe_.reset();
    return piece;
  }
  piece.bytes = *std::move(bytes);
  const std::uint64_t room = limit_ - std::min(limit_, printed_);
  printed_ += piece.bytes.size();
  if (piece.bytes.size() > room) {
    piece.over = true;
    piece.bytes.resize(room);
  }
  // What was printed is kept for people; a full disk there must not end the attempt.
  const std::string_view head = kept_.take(piece.bytes);
  if (!head.empty() && !write_all(file_.get(), head)) unwritten_ += head.size();
  return piece;
}

void OutputStream::close() {
  pipe_.reset();
  file_.reset();
  const std::string tail = kept_.tail();
  if (tail.empty()) return;
  auto file = open_file(tail_path_, kNewFile);
  if (!file || !write_all(file->get(), tail)) unwritten_ += tail.size();
}

}  // namespace cofferdam::attempt
