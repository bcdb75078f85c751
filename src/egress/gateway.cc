#include "egress/gateway.h"

#include <chrono>
#include <utility>

#include "base/io.h"
#include "contract/json.h"
#include "egress/first_line.h"
#include "egress/gateway_setup.h"

namespace cofferdam::egress {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(10);

}  // namespace

Result<Gateway> Gateway::start(const std::string& program, const GatewayPolicy& policy, UniqueFd broker,
                               UniqueFd listener) {
  TRY(std::string setup, encode_setup(policy));
  TRY(Pipe setup_pipe, make_pipe());
  TRY(Pipe events, make_pipe());
  // Written before anybody reads, into the pipe's own buffer: this side can neither block on a child that
  // hangs nor get SIGPIPE from one that died.
  TRY_VOID(set_nonblocking(setup_pipe.write.get(), true));
  TRY_VOID(write_all(setup_pipe.write.get(), setup));

  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-gateway"};
  options.fds = {
      {2, 2}, {setup_pipe.read.get(), 3}, {listener.get(), 4}, {events.write.get(), 5}, {broker.get(), 6}};
  TRY(Child child, spawn(options));
  setup_pipe.read.reset();
  setup_pipe.write.reset();
  events.write.reset();
  listener.reset();
  broker.reset();

  TRY(contract::Json line, read_first_line("the gateway", events.read.get(), &child, kStartLimit));
  contract::JsonFault fault;
  contract::ObjectReader in(line, "$", &fault);
  in.boolean("ready");
  in.finish();
  if (fault.failed()) return fault.error().with("the gateway's first line");
  return Gateway(std::move(child), std::move(events.read));
}

}  // namespace cofferdam::egress
