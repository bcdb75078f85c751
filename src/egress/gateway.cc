#include "egress/gateway.h"

#include <chrono>
#include <utility>

#include "base/io.h"
#include "contract/json.h"
#include "egress/first_line.h"
#include "egress/gateway_fds.h"
#include "egress/gateway_filter.h"
#include "egress/gateway_setup.h"
#include "egress/resolver.h"

namespace cofferdam::egress {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(10);

Result<Confinement> read_ready(const contract::Json& line) {
  contract::JsonFault fault;
  contract::ObjectReader in(line, "$", &fault);
  Confinement out;
  in.boolean("ready");
  out.landlock_abi = static_cast<int>(in.integer("landlock_abi", 0, 1000));
  out.ports_limited = in.boolean("ports_limited");
  in.finish();
  if (fault.failed()) return fault.error().with("the gateway's first line");
  return out;
}

// Started only when there is a name to look up; `names` is the gateway's end of the socket.
Result<Child> start_resolver(const std::string& program, const GatewayPolicy& policy, UniqueFd* names) {
  TRY(std::vector<std::string> hosts, hosts_to_resolve(policy));
  if (hosts.empty()) return Child();
  TRY(SocketPair sockets, make_seqpacket_pair());
  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-resolver"};
  // resolv.conf(5): a name server that does not answer costs seconds, not half a minute.
  options.env = {"RES_OPTIONS=timeout:2 attempts:2"};
  options.fds = {{2, 2}, {sockets.theirs.get(), 3}};
  TRY(Child child, spawn(options));
  sockets.theirs.reset();
  TRY_VOID(send_message(sockets.ours.get(), encode_resolver_setup({std::move(hosts), policy.run_as})));
  *names = std::move(sockets.ours);
  return child;
}

// What is not there is not handed down.
void add_ends(const GatewayEnds& ends, const UniqueFd& names, std::vector<FdMapping>* fds) {
  const auto add = [fds](const UniqueFd& end, int as) {
    if (end.valid()) fds->push_back({end.get(), as});
  };
  add(ends.listener, kListenerFd);
  add(ends.broker, kBrokerFd);
  add(ends.tunnels, kTunnelFd);
  add(ends.capture, kCaptureFd);
  add(names, kNamesFd);
  int next = kFirstDestinationFd;
  for (const UniqueFd& broker : ends.destination_brokers) add(broker, next++);
}

}  // namespace

Result<Gateway> Gateway::start(const std::string& program, const GatewayPolicy& policy, GatewayEnds ends) {
  TRY(std::string setup, encode_setup(policy));
  TRY(std::string filter, compile_gateway_filter());
  TRY(UniqueFd filter_file, make_sealed_memfd("filter", filter));
  TRY(Pipe setup_pipe, make_pipe());
  TRY(Pipe events, make_pipe());
  // Written before anybody reads, into the pipe's own buffer: this side can neither block on a child that
  // hangs nor get SIGPIPE from one that died.
  TRY_VOID(set_nonblocking(setup_pipe.write.get(), true));
  TRY_VOID(write_all(setup_pipe.write.get(), setup));
  UniqueFd names;
  TRY(Child resolver, start_resolver(program, policy, &names));

  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-gateway"};
  options.fds = {{2, 2},
                 {setup_pipe.read.get(), kSetupFd},
                 {events.write.get(), kEventsFd},
                 {filter_file.get(), kFilterFd}};
  add_ends(ends, names, &options.fds);
  TRY(Child child, spawn(options));
  setup_pipe.read.reset();
  setup_pipe.write.reset();
  events.write.reset();
  ends = {};
  names.reset();

  TRY(contract::Json line, read_first_line("the gateway", events.read.get(), &child, kStartLimit));
  TRY(Confinement confinement, read_ready(line));
  return Gateway(std::move(child), std::move(resolver), std::move(events.read), confinement);
}

}  // namespace cofferdam::egress
