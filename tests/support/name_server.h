// A name server for tests, on a loopback address of its own: it answers from a list and writes down what it
// was asked.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace cofferdam::test {

class NameServer {
 public:
  // `addresses`: dotted quads by name. Port 53, which a resolver cannot be told otherwise: check listens().
  explicit NameServer(std::map<std::string, std::string> addresses);
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer();

  bool listens() const { return socket_.valid(); }
  const std::string& address() const { return address_; }
  std::vector<std::string> queries();  // names, in lower case

 private:
  void serve();
  std::map<std::string, std::string> addresses_;
  std::string address_;
  UniqueFd socket_;
  std::mutex mutex_;
  std::vector<std::string> queries_;
  std::thread thread_;
};

}  // namespace cofferdam::test
