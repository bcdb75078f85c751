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

// Everything that one run watches.
struct Run {
  Box* box;
  Stream out;
  Stream err;
  ExitStatus status;
  bool gone = false;
};

Status take_message(Run* run) {
  TRY(BoxReport report, run->box->receive());
  switch (report.kind) {
    case BoxReport::Kind::exited:
      run->status = report.status;
      break;
    case BoxReport::Kind::not_started:
      return sys_error("cannot start the program of a box", report.error);
    case BoxReport::Kind::deadline:
      return make_error(Code::timeout, "ran into its deadline");
    case BoxReport::Kind::lost:
      run->gone = true;
      break;
    case BoxReport::Kind::started:
    case BoxReport::Kind::over:  // its end follows
    case BoxReport::Kind::full:
    case BoxReport::Kind::gone:
      break;
  }
  return {};
}

// Until the box is gone and both pipes are at their end.
Status pump(Run* run, const Interrupt& interrupt) {
  while (!run->gone || run->out.fd.valid() || run->err.fd.valid()) {
    std::vector<pollfd> entries = {{run->gone ? -1 : run->box->control_fd(), POLLIN, 0},
                                   {run->out.fd.get(), POLLIN, 0},
                                   {run->err.fd.get(), POLLIN, 0}};
    if (interrupt.add) interrupt.add(&entries);
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return sys_error("poll", errno);
    if (entries[0].revents != 0) TRY_VOID(take_message(run));
    if (entries[1].revents != 0) TRY_VOID(drain(&run->out));
    if (entries[2].revents != 0) TRY_VOID(drain(&run->err));
    entries.erase(entries.begin(), entries.begin() + 3);
    if (interrupt.stop && interrupt.stop(entries)) return make_error(Code::conflict, "interrupted");
  }
  if (run->status.code.has_value() || run->status.signal.has_value()) return {};
  return make_error(Code::protocol, "ended without an exit status");
}

}  // namespace

Result<BoxOutput> run_box(const BoxHost& host, const contract::StorageRef& storage, contract::Profile profile,
                          std::size_t max_output, const Interrupt& interrupt) {
  TRY(Pipe out, make_pipe());
  TRY(Pipe err, make_pipe());
  profile.fds.push_back({out.write.get(), 1});
  profile.fds.push_back({err.write.get(), 2});
  TRY(Box box, Box::start(host, storage, profile));
  out.write.reset();
  err.write.reset();
  TRY_VOID(box.go());
  Run run{&box,
          {std::move(out.read), {}, max_output, true},
          {std::move(err.read), {}, kErrorText, false},
          {},
          false};
  TRY_VOID(set_nonblocking(run.out.fd.get(), true));
  TRY_VOID(set_nonblocking(run.err.fd.get(), true));
  Status pumped = pump(&run, interrupt);
  if (const auto facts = box.group_facts(); facts.has_value() && facts->oom_kills > 0) {
    return make_error(Code::exhausted,
                      fmt::format("the {} box needs more than the {} bytes of memory that it may take",
                                  profile.kind, box.group_bounds()->memory_bytes));
  }
  if (!pumped) return pumped.error().with(profile.kind + " box");
  TRY_VOID(box.wait_gone(std::chrono::seconds(30)));
  BoxOutput output;
  output.status = run.status;
  output.out = std::move(run.out.text);
  output.err = std::move(run.err.text);
  return output;
}

}  // namespace cofferdam::sandbox
