#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace cofferdam::standin {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using TlsStream = asio::ssl::stream<Tcp::socket>;

constexpr std::uint64_t kMaxBody = 64ULL << 20U;
constexpr std::uint32_t kMaxHead = 64U << 10U;
constexpr std::string_view kNoHttp = "220 this is some other service\r\n\xff\xfe\r\n\r\n";

// Set once, when the program ends; whoever waits for time to pass waits on this instead.
class Stop {
 public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool is_set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return set_;
  }
  // False when the stop came first.
  bool pass(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return !changed_.wait_for(lock, time, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

struct Shared {
  ServerOptions options;
  Stop stop;
};

Tcp::socket& socket_of(Tcp::socket& stream) {
  return stream;
}
Tcp::socket& socket_of(TlsStream& stream) {
  return stream.next_layer();
}

template <typename Stream>
class StreamExchange final : public Exchange {
 public:
  StreamExchange(Stream& stream, const Request& request, bool keep_alive, Shared& shared)
      : stream_(stream), request_(request), keep_alive_(keep_alive), shared_(shared) {}

  void note(const std::string& key, const std::string& json) override { notes_[key] = json; }

  bool respond(unsigned status, const Headers& headers, const std::string& body) override {
    record(status);
    http::response<http::string_body> response;
    set_status(response, status);
    set_headers(response, headers);
    if (request_.method == "HEAD") {
      response.content_length(body.size());
    } else {
      response.body() = body;
      response.prepare_payload();
    }
    http::response_serializer<http::string_body> serializer(response);
    if (request_.method == "HEAD") {
      http::write_header(stream_, serializer, failed_);
    } else {
      http::write(stream_, serializer, failed_);
    }
    return alive();
  }

  bool begin(unsigned status, const Headers& headers) override {
    record(status);
    http::response<http::empty_body> response;
    set_status(response, status);
    set_headers(response, headers);
    response.chunked(true);
    http::response_serializer<http::empty_body> serializer(response);
    http::write_header(stream_, serializer, failed_);
    return alive();
  }

  bool chunk(std::string_view bytes) override {
    if (!alive() || bytes.empty()) return alive();
    asio::write(stream_, http::make_chunk(asio::buffer(bytes.data(), bytes.size())), failed_);
    return alive();
  }

  bool end() override {
    if (alive()) asio::write(stream_, http::make_chunk_last(), failed_);
    return alive();
  }

  void hold() override {
    record(0);
    char unwanted[4096];
    error_code ended;
    while (!ended) stream_.read_some(asio::buffer(unwanted), ended);
    failed_ = ended;
  }

  void reset() override {
    record(0);
    error_code ignored;
    socket_of(stream_).set_option(asio::socket_base::linger(true, 0), ignored);
    failed_ = asio::error::connection_reset;
  }

  void babble() override {
    record(0);
    asio::write(stream_, asio::buffer(kNoHttp.data(), kNoHttp.size()), failed_);
    if (alive()) failed_ = asio::error::connection_aborted;
  }

  bool pace(std::chrono::milliseconds time) override { return time.count() == 0 || shared_.stop.pass(time); }

  bool alive() const { return !failed_; }

 private:
  // By number: of the vendors' own, such as 529, Beast has no name, and would send 0.
  template <typename Response>
  static void set_status(Response& response, unsigned status) {
    response.version(11);
    response.result(status);
  }

  template <typename Response>
  void set_headers(Response& response, const Headers& headers) {
    response.keep_alive(keep_alive_);
    for (const auto& [name, value] : headers) response.set(name, value);
  }

  void record(unsigned status) {
    if (recorded_) return;
    recorded_ = true;
    shared_.options.recorder->write(request_, status, notes_);
  }

  Stream& stream_;
  const Request& request_;
  bool keep_alive_;
  Shared& shared_;
  std::map<std::string, std::string> notes_;
  error_code failed_;
  bool recorded_ = false;
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

Request to_request(std::uint64_t connection, http::request<http::string_body>&& message) {
  Request request;
  request.connection = connection;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string& value = request.headers[lower(std::string_view(field.name_string()))];
    if (!value.empty()) value += ", ";
    value += std::string_view(field.value());
  }
  request.body = std::move(message.body());
  return request;
}

// Requests on one connection until either side has had enough.
template <typename Stream>
void serve(Stream& stream, std::uint64_t connection, Shared& shared) {
  boost::beast::flat_buffer buffer;
  for (bool open = true; open && !shared.stop.is_set();) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(kMaxBody);
    parser.header_limit(kMaxHead);
    error_code failed;
    http::read_header(stream, buffer, parser, failed);
    if (!failed && lower(std::string_view(parser.get()[http::field::expect])) == "100-continue") {
      http::response<http::empty_body> proceed(http::status::continue_, 11);
      http::write(stream, proceed, failed);
    }
    if (!failed) http::read(stream, buffer, parser, failed);
    if (failed) return;
    const bool keep_alive = parser.get().keep_alive();
    const Request request = to_request(connection, parser.release());
    StreamExchange<Stream> exchange(stream, request, keep_alive, shared);
    bool handled = false;
    for (VendorApi* api : shared.options.apis) handled = handled || api->handle(request, exchange);
    if (!handled) exchange.respond(404, {{"content-type", "text/plain"}}, "no such thing here\n");
    open = keep_alive && exchange.alive();
  }
}

void serve_connection(Tcp::socket& socket, std::uint64_t number, Shared& shared) {
  error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  if (!shared.options.tls) {
    serve(socket, number, shared);
    return;
  }
  // The context is ours and outlives the connection: the wrapper takes a reference of its own.
  SSL_CTX_up_ref(shared.options.tls.get());
  asio::ssl::context context(shared.options.tls.get());
  TlsStream stream(std::move(socket), context);
  error_code failed;
  stream.handshake(asio::ssl::stream_base::server, failed);
  if (!failed) {
    serve(stream, number, shared);
    // One way only: waiting for the client's close_notify would let it keep us.
    SSL_shutdown(stream.native_handle());
    stream.next_layer().shutdown(Tcp::socket::shutdown_send, ignored);
  }
  socket = std::move(stream.next_layer());
}

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, UniqueFd listener, std::uint16_t port)
      : listener_(std::move(listener)), port_(port) {
    shared_.options = std::move(options);
  }

  ~AsioServer() override {
    shared_.stop.set();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Connection& connection : connections_) {
        if (connection.fd >= 0) ::shutdown(connection.fd, SHUT_RDWR);
      }
    }
    for (Connection& connection : connections_) connection.thread.join();
  }

  std::uint16_t port() const override { return port_; }
  int listener_fd() const override { return listener_.get(); }

  void accept_one() override {
    collect();
    UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.valid()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.fd = accepted.release();
    const std::uint64_t number = ++accepted_;
    connection.thread = std::thread([this, &connection, number] { run(connection, number); });
  }

 private:
  struct Connection {
    int fd = -1;  // under mutex_; -1: the thread has closed it or is about to
    bool done = false;
    std::thread thread;
  };

  void run(Connection& connection, std::uint64_t number) {
    asio::io_context context;
    Tcp::socket socket(context);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      error_code ignored;
      socket.assign(Tcp::v4(), connection.fd, ignored);
    }
    serve_connection(socket, number, shared_);
    const std::lock_guard<std::mutex> lock(mutex_);
    connection.fd = -1;  // before the close, so that the destructor never shuts a stranger's number down
    error_code ignored;
    socket.close(ignored);
    connection.done = true;
  }

  // Joins the threads that have ended.
  void collect() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (!at->done) {
        ++at;
        continue;
      }
      at->thread.join();
      at = connections_.erase(at);
    }
  }

  Shared shared_;
  UniqueFd listener_;
  std::uint16_t port_;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::uint64_t accepted_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return sys_error("socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (::bind(listener.get(), generic, length) != 0) return sys_error("bind 127.0.0.1", errno);
  if (::listen(listener.get(), 128) != 0) return sys_error("listen", errno);
  if (::getsockname(listener.get(), generic, &length) != 0) return sys_error("getsockname", errno);
  const std::uint16_t port = ntohs(address.sin_port);
  return std::unique_ptr<Server>(std::make_unique<AsioServer>(std::move(options), std::move(listener), port));
}

}  // namespace cofferdam::standin
