// The broker, seen from the supervisor: a process of its own that gets the vendor's credential and hands
// short-lived ones to the gateway over a private socket. It never sees a byte from a box.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "egress/broker_setup.h"
#include "egress/credential.h"

namespace cofferdam::egress {

class Broker {
 public:
  // Starts `program internal-broker`; a secret of the setup goes over a pipe, never through argv or
  // environment, and is wiped here. Returns once the broker has the first credential, or with the reason why
  // there is none (Code::denied: the login has expired).
  static Result<Broker> start(const std::string& program, BrokerSetup setup);
  CredentialKind kind() const { return kind_; }
  // The gateway's end of the socket; given away once.
  UniqueFd take_socket() { return std::move(socket_); }
  Child& process() { return child_; }

 private:
  Broker(Child child, UniqueFd socket, CredentialKind kind)
      : child_(std::move(child)), socket_(std::move(socket)), kind_(kind) {}
  Child child_;
  UniqueFd socket_;
  CredentialKind kind_;
};

// Body of `cofferdam internal-broker`. Descriptors: 3 setup (read to the end), 4 the socket to the gateway,
// 5 one line for the supervisor. Ends when the gateway does. Returns the exit code.
int broker_main();

}  // namespace cofferdam::egress
