#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "base/text.h"
#include "sandbox/native/box.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::size_t kErrorText = 16384;

struct Stream {
  UniqueFd fd;
  std::string text;
  std::size_t keep = 0;
  bool strict = false;  // more than `keep` is an error, otherwise it is dropped
};

Status drain(Stream* stream) {
  bool would_block = false;
  TRY(std::string bytes, read_some(stream->fd.get(), 65536, &would_block));
  if (would_block) return {};
  if (bytes.empty()) {
    stream->fd.reset();
    return {};
  }
  const std::size_t room = stream->keep - std::min(stream->keep, stream->text.size());
  if (bytes.size() > room && stream->strict)
    return make_error(Code::exhausted, "a box of ours printed too much");
  stream->text.append(bytes, 0, room);
  return {};
}

// Until the box is gone and both pipes are at their end.
Status pump(Box* box, Stream* out, Stream* err, ExitStatus* status) {
  bool gone = false;
  while (!gone || out->fd.valid() || err->fd.valid()) {
    pollfd entries[3] = {
        {gone ? -1 : box->control_fd(), POLLIN, 0}, {out->fd.get(), POLLIN, 0}, {err->fd.get(), POLLIN, 0}};
    if (::poll(entries, 3, -1) < 0 && errno != EINTR) return sys_error("poll", errno);
    if (entries[0].revents != 0) {
      TRY(BoxReport report, box->receive());
      if (report.kind == BoxReport::Kind::exited) *status = report.status;
      if (report.kind == BoxReport::Kind::not_started)
        return sys_error("cannot start the program of a box", report.error);
      if (report.kind == BoxReport::Kind::deadline)
        return make_error(Code::timeout, "a box of ours ran into its deadline");
      gone = report.kind == BoxReport::Kind::lost;
    }
    if (out->fd.valid() && entries[1].revents != 0) TRY_VOID(drain(out));
    if (err->fd.valid() && entries[2].revents != 0) TRY_VOID(drain(err));
  }
  return {};
}

}  // namespace

Result<BoxOutput> run_box(const BoxHost& host, const contract::StorageRef& storage, contract::Profile profile,
                          std::size_t max_output) {
  TRY(Pipe out, make_pipe());
  TRY(Pipe err, make_pipe());
  profile.fds.push_back({out.write.get(), 1});
  profile.fds.push_back({err.write.get(), 2});
  TRY(Box box, Box::start(host, storage, profile));
  out.write.reset();
  err.write.reset();
  TRY_VOID(box.go());
  Stream out_stream{std::move(out.read), {}, max_output, true};
  Stream err_stream{std::move(err.read), {}, kErrorText, false};
  TRY_VOID(set_nonblocking(out_stream.fd.get(), true));
  TRY_VOID(set_nonblocking(err_stream.fd.get(), true));
  BoxOutput output;
  Status pumped = pump(&box, &out_stream, &err_stream, &output.status);
  if (!pumped) return pumped.error().with(profile.kind);
  TRY_VOID(box.wait_gone(std::chrono::seconds(30)));
  output.out = std::move(out_stream.text);
  output.err = std::move(err_stream.text);
  return output;
}

}  // namespace cofferdam::sandbox
