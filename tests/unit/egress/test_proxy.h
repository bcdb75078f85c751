// A corporate HTTP proxy for tests: it answers CONNECT as told and ties the ends together.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace cofferdam::egress::testing {

class TestProxy {
 public:
  // Every tunnel ends at 127.0.0.1:`port`, whatever was asked for.
  TestProxy(std::uint16_t port, std::string answer);
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;
  ~TestProxy();
  std::uint16_t port() const { return port_; }
  std::vector<std::string> heads();
  std::string seen();  // all bytes that went through, both ways

 private:
  void run();
  void serve(UniqueFd client);
  std::uint16_t target_;
  std::string answer_;
  std::uint16_t port_ = 0;
  UniqueFd listener_;
  UniqueFd stop_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  std::string seen_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace cofferdam::egress::testing
