#include "egress/server.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/json.h"
#include "egress/confine.h"
#include "egress/headers.h"
#include "egress/policy.h"
#include "egress/session.h"
#include "egress/start_pages.h"
#include "egress/tunnel.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr auto kAcceptPause = std::chrono::milliseconds(50);
constexpr auto kStopLimit = std::chrono::seconds(1);
constexpr int kEventLimitMs = 30'000;

// One line, whole, or not at all. Blocks while the supervisor is behind: the box has no right to act
// unrecorded, so it waits too.
Status write_line(int fd, std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n > 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return sys_error("cannot write an event", errno);
    pollfd entry{fd, POLLOUT, 0};
    if (::poll(&entry, 1, kEventLimitMs) == 0) return make_error(Code::timeout, "nobody reads the events");
  }
  return {};
}

class Server {
 public:
  Server(const GatewaySetup& setup, int events_fd) : setup_(&setup), events_fd_(events_fd) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Their sockets and timers belong to the context, which goes before shared_ does.
  ~Server() {
    shared_.upstream.reset();
    shared_.names.reset();
    shared_.tokens.reset();
    if (tunnels_.has_value()) tunnels_->drop_credentials();
  }
  Status prepare(ServerInput* input);
  // Nothing hostile is read before this.
  Status lock_down(const GatewayHooks& hooks, const std::string& filter);
  Status run();

 private:
  asio::awaitable<void> accept(tcp::acceptor* acceptor);
  void stop_if_empty();
  void admit(tcp::socket socket);
  void watch_events();
  void stop();
  void arm_deadline();
  void end(Status status);
  Status listen(UniqueFd listener, tcp::acceptor* acceptor);

  const GatewaySetup* setup_;
  int events_fd_;
  Status status_;
  Confinement confinement_;
  // Declared before the context: its destructor still destroys suspended sessions and tunnels, which use
  // these.
  Shared shared_;
  std::optional<TunnelHub> tunnels_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  tcp::acceptor tunnel_acceptor_{context_};
  asio::signal_set signals_{context_};
  asio::steady_timer stop_timer_{context_};
  asio::steady_timer deadline_{context_};
  asio::posix::stream_descriptor events_{context_};
};

// The box made the socket; which family is its business.
Status Server::listen(UniqueFd listener, tcp::acceptor* acceptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  int listening = 0;
  socklen_t option_size = sizeof listening;
  void* raw = &address;
  if (::getsockname(listener.get(), static_cast<sockaddr*>(raw), &size) != 0 ||
      ::getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &option_size) != 0 ||
      listening == 0) {
    return make_error(Code::protocol, "the gateway was not given a listening socket");
  }
  error_code ec;
  acceptor->assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.release(), ec);
  if (ec) return make_error(Code::internal, "the gateway's listener: " + ec.message());
  return {};
}

Status Server::prepare(ServerInput* input) {
  shared_.names = std::make_unique<NameClient>(&context_, std::move(input->names));
  TRY_VOID(shared_.names->start());
  const bool vendor = setup_->policy.vendor != contract::Vendor::none;
  if (vendor) {
    TRY(shared_.upstream, Upstream::create(&context_, shared_.names.get(), *setup_));
    TRY(shared_.tokens,
        TokenStore::create(&context_, std::move(input->credential), std::move(input->broker)));
    TRY_VOID(listen(std::move(input->listener), &acceptor_));
  }
  shared_.setup = setup_;
  shared_.capture = CaptureFile(std::move(input->capture));
  shared_.record = [this](const GatewayEvent& event) {
    Status written = write_line(events_fd_, encode_gateway_event(event));
    if (!written) end(std::move(written));
  };
  if (input->tunnels.valid()) {
    TRY_VOID(listen(std::move(input->tunnels), &tunnel_acceptor_));
    tunnels_.emplace(&context_, setup_, shared_.names.get(), &shared_.record);
    TRY_VOID(tunnels_->use_credentials(std::move(input->destination_brokers)));
  }
  error_code ec;
  signals_.add(SIGTERM, ec);
  TRY(UniqueFd events, duplicate(events_fd_));
  if (!ec) events_.assign(events.release(), ec);
  if (ec) return make_error(Code::internal, "the gateway's loop: " + ec.message());
  return {};
}

Status Server::lock_down(const GatewayHooks& hooks, const std::string& filter) {
  if (hooks.before_confinement) TRY_VOID(hooks.before_confinement());
  // Root only reads the CA bundle; hostile HTTP is parsed by somebody who owns nothing.
  if (setup_->policy.run_as.has_value()) TRY_VOID(become(*setup_->policy.run_as));
  TRY(confinement_, confine({filter, ports_to_reach(*setup_), descriptors_needed(setup_->policy),
                             shared_.capture.enabled() ? kMaxCaptureFile : 0}));
  if (hooks.after_confinement) TRY_VOID(hooks.after_confinement());
  release_start_pages();
  return {};
}

void Server::admit(tcp::socket socket) {
  if (shared_.sessions.size() >= setup_->policy.max_connections) {
    Decision decision = deny("http: too many connections", {}, 503);
    GatewayEvent event;
    event.rule = decision.rule;
    event.denied = true;
    event.status = decision.status;
    shared_.record(event);
    std::string body = denial_body(decision);
    std::string text =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: "
        "close\r\ncontent-length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    (void)::send(socket.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  auto session = std::make_shared<Session>(&shared_, std::move(socket));
  asio::co_spawn(
      context_,
      [](std::shared_ptr<Session> running) -> asio::awaitable<void> { co_await running->run(); }(session),
      [](const std::exception_ptr& failure) {
        // Nothing is expected to throw; if it does, the gateway ends and with it the attempt.
        if (failure) std::rethrow_exception(failure);
      });
}

asio::awaitable<void> Server::accept(tcp::acceptor* acceptor) {
  asio::steady_timer pause(context_);
  while (acceptor->is_open()) {
    error_code ec;
    tcp::socket socket(context_);
    co_await acceptor->async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
    if (!ec && acceptor == &tunnel_acceptor_) {
      tunnels_->serve(std::move(socket));
    } else if (!ec) {
      admit(std::move(socket));
    } else if (acceptor->is_open()) {
      // Out of descriptors or memory: not at once again, or this would be all that the process does.
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    }
  }
}

// A pipe without a reader: the supervisor is gone, or does not want to know any more.
void Server::watch_events() {
  events_.async_wait(asio::posix::stream_descriptor::wait_error, [this](error_code ec) {
    if (ec != asio::error::operation_aborted) end(make_error(Code::io, "nobody reads the events"));
  });
}

void Server::stop() {
  error_code ignored;
  acceptor_.close(ignored);
  tunnel_acceptor_.close(ignored);
  events_.close(ignored);
  if (shared_.tokens) shared_.tokens->close();
  shared_.when_empty = [this] { stop_if_empty(); };
  if (tunnels_.has_value()) tunnels_->when_empty = shared_.when_empty;
  stop_if_empty();
  std::vector<Session*> sessions(shared_.sessions.begin(), shared_.sessions.end());
  for (Session* session : sessions) session->abort();
  if (tunnels_.has_value()) tunnels_->abort_all();
  // For what does not unwind at once, such as a name lookup.
  stop_timer_.expires_after(kStopLimit);
  stop_timer_.async_wait([this](error_code) { context_.stop(); });
}

// A supervisor that is stopped, or hangs, ends nothing: the way out closes by itself.
void Server::arm_deadline() {
  if (setup_->policy.deadline_ms == 0) return;
  deadline_.expires_after(std::chrono::milliseconds(setup_->policy.deadline_ms));
  deadline_.async_wait([this](error_code ec) {
    if (ec) return;
    GatewayEvent event;
    event.rule = kDeadlineRule;
    event.limit = true;
    shared_.record(event);
    stop();
  });
}

void Server::stop_if_empty() {
  if (shared_.sessions.empty() && (!tunnels_.has_value() || tunnels_->empty())) context_.stop();
}

void Server::end(Status status) {
  if (status_) status_ = std::move(status);
  context_.stop();
}

Status Server::run() {
  const contract::Json first = {{"ready", true},
                                {"landlock_abi", confinement_.landlock_abi},
                                {"ports_limited", confinement_.ports_limited}};
  TRY_VOID(write_line(events_fd_, contract::canonical(first)));
  watch_events();
  arm_deadline();
  signals_.async_wait([this](error_code ec, int) {
    if (!ec) stop();
  });
  for (tcp::acceptor* acceptor : {&acceptor_, &tunnel_acceptor_}) {
    if (!acceptor->is_open()) continue;
    asio::co_spawn(context_, accept(acceptor), [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
    });
  }
  try {
    context_.run();
  } catch (const std::exception& failure) {
    end(make_error(Code::internal, failure.what()));
  }
  shared_.when_empty = nullptr;
  if (tunnels_.has_value()) tunnels_->when_empty = nullptr;
  return std::move(status_);
}

}  // namespace

Status serve(const GatewaySetup& setup, const GatewayHooks& hooks, ServerInput input) {
  Server server(setup, input.events_fd);
  TRY_VOID(server.prepare(&input));
  TRY_VOID(server.lock_down(hooks, input.filter));
  return server.run();
}

}  // namespace cofferdam::egress
