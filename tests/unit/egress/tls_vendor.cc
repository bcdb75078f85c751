#include "unit/egress/tls_vendor.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace cofferdam::egress::testing {
namespace {

void add_extension(X509* certificate, int id, const std::string& value) {
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

std::size_t content_length(const std::string& head) {
  std::size_t at = head.find("content-length: ");
  return at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 16, nullptr, 10);
}

// Head and body; an empty head when the peer went away.
VendorRequest read_request(SSL* ssl) {
  VendorRequest request;
  std::string bytes;
  std::size_t end = std::string::npos;
  while (end == std::string::npos || bytes.size() < end + content_length(request.head)) {
    char buffer[4096];
    int n = ::SSL_read(ssl, buffer, sizeof buffer);
    if (n <= 0) return {};
    bytes.append(buffer, static_cast<std::size_t>(n));
    if (end == std::string::npos && bytes.find("\r\n\r\n") != std::string::npos) {
      end = bytes.find("\r\n\r\n") + 4;
      request.head = bytes.substr(0, end);
    }
  }
  request.body = bytes.substr(end);
  const char* name = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  request.sni = name == nullptr ? "" : name;
  return request;
}

}  // namespace

Certificate::Certificate(const std::string& names) {
  key_.reset(EVP_EC_gen("P-256"));
  x509_.reset(::X509_new());
  ::X509_set_version(x509_.get(), 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x509_.get()), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(x509_.get()), -3600);
  ::X509_gmtime_adj(::X509_getm_notAfter(x509_.get()), 3600);
  ::X509_set_pubkey(x509_.get(), key_.get());
  X509_NAME* name = ::X509_get_subject_name(x509_.get());
  // A name of its own for each: a store looks issuers up by name.
  std::string common = "Cofferdam test vendor " + random_hex(8);
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1, 0);
  ::X509_set_issuer_name(x509_.get(), name);
  add_extension(x509_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(x509_.get(), NID_subject_alt_name, names);
  ::X509_sign(x509_.get(), key_.get(), ::EVP_sha256());
}

std::string Certificate::pem() const {
  BIO* bio = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_X509(bio, x509_.get());
  std::string out;
  char buffer[4096];
  for (int n = ::BIO_read(bio, buffer, sizeof buffer); n > 0; n = ::BIO_read(bio, buffer, sizeof buffer)) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  ::BIO_free(bio);
  return out;
}

bool VendorConnection::write(std::string_view bytes) {
  return ::SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
}

void VendorConnection::wait_for_close() {
  char byte = 0;
  while (::SSL_read(ssl_, &byte, 1) > 0) continue;
}

void VendorConnection::limit_writes(std::chrono::milliseconds limit) {
  timeval time{limit.count() / 1000, (limit.count() % 1000) * 1000};
  ::setsockopt(::SSL_get_fd(ssl_), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

UniqueFd listen_on_loopback(std::uint16_t* port, int backlog) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  void* raw = &address;
  socklen_t size = sizeof address;
  if (::bind(fd.get(), static_cast<sockaddr*>(raw), size) != 0 || ::listen(fd.get(), backlog) != 0 ||
      ::getsockname(fd.get(), static_cast<sockaddr*>(raw), &size) != 0) {
    ::abort();
  }
  *port = ::ntohs(address.sin_port);
  return fd;
}

TlsVendor::TlsVendor(const Certificate& certificate, Handler handler) : handler_(std::move(handler)) {
  context_.reset(::SSL_CTX_new(::TLS_server_method()));
  ::SSL_CTX_use_certificate(context_.get(), certificate.x509());
  ::SSL_CTX_use_PrivateKey(context_.get(), certificate.key());
  listener_ = listen_on_loopback(&port_);
  acceptor_ = std::thread([this] { accept_all(); });
}

TlsVendor::~TlsVendor() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

void TlsVendor::accept_all() {
  while (true) {
    int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) ::shutdown(fd, SHUT_RDWR);
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

bool TlsVendor::serve_one(SSL* ssl) {
  VendorRequest request = read_request(ssl);
  if (request.head.empty()) return false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
  }
  VendorConnection connection(ssl);
  handler_(request, &connection);
  return connection.kept();
}

void TlsVendor::serve(int fd) {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(::SSL_new(context_.get()), &SSL_free);
  ::SSL_set_fd(ssl.get(), fd);
  if (::SSL_accept(ssl.get()) == 1) {
    while (serve_one(ssl.get())) continue;
    ::SSL_shutdown(ssl.get());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(std::find(open_.begin(), open_.end(), fd));
  ::close(fd);
  closed_.notify_all();
}

std::size_t TlsVendor::connections() {
  std::lock_guard<std::mutex> lock(mutex_);
  return threads_.size();
}

bool TlsVendor::wait_until_all_closed() {
  std::unique_lock<std::mutex> lock(mutex_);
  return closed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_.empty(); });
}

std::vector<VendorRequest> TlsVendor::requests() {
  std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

std::string json_answer(std::string_view body, std::string_view more_fields) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + std::string(more_fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string chunk(std::string_view data) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + std::string(data) + "\r\n";
}

}  // namespace cofferdam::egress::testing
