#include "attempt/cancel.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::attempt {
namespace {

constexpr std::size_t kMaxLine = 8192;
constexpr std::int64_t kMaxPoll = 3'600'000;  // milliseconds of one poll(2), which counts in an int

sigset_t cancel_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
  return set;
}

Result<UniqueFd> watch_signals() {
  sigset_t set = cancel_signals();
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return sys_error("cannot block signals", errno);
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return sys_error("cannot watch signals", errno);
  return signals;
}

struct Request {
  bool checkpoint = false;
  std::string reason;
};

// {"cancel":{"reason":"..."}} or {"checkpoint":{"reason":"..."}}. Who asked is the channel it came through,
// not what it claims.
Result<Request> decode_request(std::string_view line) {
  TRY(contract::Json json, contract::parse_json(line, kMaxLine));
  contract::JsonFault fault;
  contract::ObjectReader outer(json, "$", &fault);
  Request request;
  request.checkpoint = outer.has("checkpoint");
  contract::ObjectReader in = outer.object(request.checkpoint ? "checkpoint" : "cancel");
  request.reason =
      printable(in.maybe_text("reason", {0, 1000}, contract::Absent::allowed).value_or(""), 1000);
  in.finish();
  outer.finish();
  if (fault.failed()) return fault.error();
  return request;
}

// Bound through /proc/self/fd because a socket's path may hold 108 bytes only (unix(7)).
Result<UniqueFd> listen_at(const std::string& folder) {
  TRY(UniqueFd dir, open_file(folder, O_PATH | O_DIRECTORY));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return sys_error("cannot make the control socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/control", dir.get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||  // NOLINT
      ::listen(fd.get(), 16) != 0) {
    return sys_error("cannot listen on the control socket", errno);
  }
  return fd;
}

bool ready(const std::vector<pollfd>& entries, int fd) {
  for (const pollfd& entry : entries) {
    if (fd >= 0 && entry.fd == fd && entry.revents != 0) return true;
  }
  return false;
}

}  // namespace

CancelSources::CancelSources(UniqueFd signals, UniqueFd listener, std::string socket_path,
                             const Controls* controls)
    : signals_(std::move(signals)),
      listener_(std::move(listener)),
      socket_path_(std::move(socket_path)),
      controls_(controls),
      stream_(controls->cancel_fd),
      stream_text_(controls->cancel_pending) {}

Result<CancelSources> CancelSources::watch(const Controls& controls) {
  TRY(UniqueFd signals, watch_signals());
  return CancelSources(std::move(signals), UniqueFd(), "", &controls);
}

Result<CancelSources> CancelSources::create(const std::string& attempt_dir, const Controls& controls) {
  TRY(UniqueFd signals, watch_signals());
  TRY(UniqueFd listener, listen_at(attempt_dir));
  return CancelSources(std::move(signals), std::move(listener), attempt_dir + "/control", &controls);
}

CancelSources::~CancelSources() {
  if (signals_.valid()) {
    // What nobody has read any more was meant for what has ended.
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
    const sigset_t set = cancel_signals();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }
  if (listener_.valid()) ::unlink(socket_path_.c_str());
}

void CancelSources::add_to(std::vector<pollfd>* entries) const {
  entries->push_back({signals_.get(), POLLIN, 0});
  entries->push_back({peer_.valid() ? peer_.get() : listener_.get(), POLLIN, 0});
  if (stream_ >= 0) entries->push_back({stream_, POLLIN, 0});
}

void CancelSources::handle(const std::vector<pollfd>& entries, const Handler& handler) {
  if (ready(entries, signals_.get())) read_signal(handler);
  if (peer_.valid() && ready(entries, peer_.get())) {
    read_peer(handler);
  } else if (!peer_.valid() && ready(entries, listener_.get())) {
    accept_peer();
  }
  if (!stream_text_.empty()) take_lines(handler);
  if (ready(entries, stream_)) read_stream(handler);
}

sandbox::Interrupt CancelSources::interrupt(Account* account, bool stop) {
  auto asked = [this, account, stop](const std::vector<pollfd>& entries) {
    bool any = false;
    handle(entries, [&](const std::string& by, const std::string& reason) {
      account->cancel(by, reason);
      any = true;
    });
    return any && stop;
  };
  return {[this](std::vector<pollfd>* entries) { add_to(entries); }, asked};
}

Status CancelSources::wait_for(Account* account, int fd, std::chrono::milliseconds limit) {
  const sandbox::Interrupt asked = interrupt(account, true);
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return make_error(Code::timeout, "it did not end in time");
    std::vector<pollfd> entries = {{fd, POLLIN, 0}};
    asked.add(&entries);
    const int wait = static_cast<int>(std::min<std::int64_t>(left.count(), kMaxPoll));
    if (::poll(entries.data(), entries.size(), wait) < 0 && errno != EINTR) return sys_error("poll", errno);
    const bool ended = entries.front().revents != 0;
    entries.erase(entries.begin());
    if (asked.stop(entries)) return make_error(Code::conflict, "interrupted");
    if (ended) return {};
  }
}

void CancelSources::read_signal(const Handler& handler) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    handler("signal", fmt::format("SIG{}", ::sigabbrev_np(static_cast<int>(info.ssi_signo))));
  }
}

void CancelSources::accept_peer() {
  peer_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  peer_text_.clear();
}

void CancelSources::read_peer(const Handler& handler) {
  bool would_block = false;
  auto bytes = read_some(peer_.get(), kMaxLine, &would_block);
  if (would_block) return;
  if (bytes) peer_text_ += *bytes;
  const std::size_t end = peer_text_.find('\n');
  const bool over = !bytes || bytes->empty() || peer_text_.size() > kMaxLine;
  if (end == std::string::npos && !over) return;
  std::string answer = "{\"ok\":false}\n";
  if (end != std::string::npos) {
    auto request = decode_request(std::string_view(peer_text_).substr(0, end));
    if (request && request->checkpoint && on_checkpoint_) {
      on_checkpoint_("command", request->reason, std::move(peer_));
      peer_.reset();
      return;
    }
    if (request && request->checkpoint) {
      answer = "{\"error\":\"the agent is not running\",\"ok\":false}\n";
    } else if (request) {
      handler("command", request->reason);
      answer = "{\"ok\":true}\n";
    }
  }
  ssize_t ignored = ::send(peer_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  (void)ignored;
  peer_.reset();
}

void CancelSources::read_stream(const Handler& handler) {
  bool would_block = false;
  auto bytes = read_some(stream_, kMaxLine, &would_block);
  if (would_block) return;
  if (!bytes || bytes->empty()) {
    stream_ = -1;
    if (controls_->cancel_on_eof) handler("stdin", "end of input");
    return;
  }
  stream_text_ += *bytes;
  take_lines(handler);
}

// Whatever is not such a line is ignored: the document has been read, nothing else is expected.
void CancelSources::take_lines(const Handler& handler) {
  std::size_t end = 0;
  while ((end = stream_text_.find('\n')) != std::string::npos) {
    if (auto request = decode_request(std::string_view(stream_text_).substr(0, end))) {
      if (!request->checkpoint) handler("stdin", request->reason);
      if (request->checkpoint && on_checkpoint_) on_checkpoint_("command", request->reason, UniqueFd());
    }
    stream_text_.erase(0, end + 1);
  }
  if (stream_text_.size() > kMaxLine) stream_text_.clear();
}

}  // namespace cofferdam::attempt
