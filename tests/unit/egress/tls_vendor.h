// A vendor for tests: an HTTPS server made from sockets and OpenSSL alone, so that it shares no code with
// what it tests. It records what reached it.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace cofferdam::egress::testing {

// Self-signed, so it is its own CA.
class Certificate {
 public:
  // `names` as in openssl's subjectAltName: "IP:127.0.0.1,DNS:localhost".
  explicit Certificate(const std::string& names);
  std::string pem() const;
  X509* x509() const { return x509_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_{nullptr, &EVP_PKEY_free};
  std::unique_ptr<X509, decltype(&X509_free)> x509_{nullptr, &X509_free};
};

struct VendorRequest {
  std::string head;  // with its empty line
  std::string body;
  std::string sni;
};

// The handler's side of one connection.
class VendorConnection {
 public:
  explicit VendorConnection(SSL* ssl) : ssl_(ssl) {}
  bool write(std::string_view bytes);
  void wait_for_close();  // until the peer has gone
  // From now on a write that cannot be taken within this time fails.
  void limit_writes(std::chrono::milliseconds limit);
  // Another request is read on the same connection when the handler has returned.
  void keep_alive() { keep_ = true; }
  bool kept() const { return keep_; }

 private:
  SSL* ssl_;
  bool keep_ = false;
};

class TlsVendor {
 public:
  using Handler = std::function<void(const VendorRequest&, VendorConnection*)>;
  TlsVendor(const Certificate& certificate, Handler handler);
  TlsVendor(const TlsVendor&) = delete;
  TlsVendor& operator=(const TlsVendor&) = delete;
  ~TlsVendor();

  std::uint16_t port() const { return port_; }
  std::vector<VendorRequest> requests();
  std::size_t count() { return requests().size(); }
  std::size_t connections();  // accepted so far
  bool wait_until_all_closed();

 private:
  void accept_all();
  void serve(int fd);
  bool serve_one(SSL* ssl);
  Handler handler_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<VendorRequest> requests_;
  std::vector<int> open_;  // shut down by the destructor, closed by their threads
  std::condition_variable closed_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// A listening socket on 127.0.0.1 and its port.
UniqueFd listen_on_loopback(std::uint16_t* port, int backlog = 64);

// An answer with content-length.
std::string json_answer(std::string_view body, std::string_view more_fields = {});
// One chunk of the chunked coding; of nothing: the last one.
std::string chunk(std::string_view data);

}  // namespace cofferdam::egress::testing
