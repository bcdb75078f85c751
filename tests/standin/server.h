// HTTP/1.1 on 127.0.0.1, with or without TLS, one thread per connection.
//
// Thread rules: listen(), accept_one() and the destructor from one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "record.h"
#include "tls.h"
#include "vendor_api.h"

namespace cofferdam::standin {

struct ServerOptions {
  SslContext tls;  // null: plain HTTP
  std::vector<VendorApi*> apis;
  Recorder* recorder = nullptr;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> listen(ServerOptions options);
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends every connection and waits for their threads.
  virtual ~Server() = default;

  virtual std::uint16_t port() const = 0;
  virtual int listener_fd() const = 0;  // readable: accept_one()
  virtual void accept_one() = 0;
};

}  // namespace cofferdam::standin
