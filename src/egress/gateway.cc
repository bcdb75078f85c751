#include "egress/gateway.h"

#include <chrono>
#include <utility>

#include "base/io.h"
#include "contract/json.h"
#include "egress/gateway_fds.h"
#include "egress/gateway_filter.h"
#include "egress/gateway_setup.h"
#include "egress/resolver.h"

namespace cofferdam::egress {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kStartLimit = std::chrono::seconds(10);
constexpr std::size_t kMaxFirstLine = 8192;

// Byte by byte: what follows the first line belongs to whoever reads the events. Empty at the end of the
// stream.
Result<std::string> read_first_line(int fd) {
  const auto end = Clock::now() + kStartLimit;
  std::string line;
  while (line.size() < kMaxFirstLine) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    TRY(bool readable, wait_readable(fd, left > 0 ? static_cast<int>(left) : 0));
    if (!readable) return make_error(Code::timeout, "the gateway did not start in time");
    bool would_block = false;
    TRY(std::string byte, read_some(fd, 1, &would_block));
    if (would_block) continue;
    if (byte.empty()) return std::string();
    if (byte.front() == '\n') return line;
    line.push_back(byte.front());
  }
  return make_error(Code::protocol, "the gateway's first line is too long");
}

Result<Confinement> read_first(const std::string& line) {
  TRY(contract::Json json, contract::parse_json(line, kMaxFirstLine));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  Confinement out;
  if (in.has("error")) {
    std::string text = in.text("error", {1, kMaxFirstLine});
    if (!fault.failed()) return make_error(Code::config, text);
  } else {
    in.boolean("ready");
    out.landlock_abi = static_cast<int>(in.integer("landlock_abi", 0, 1000));
    out.ports_limited = in.boolean("ports_limited");
  }
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

}  // namespace

Result<Gateway> Gateway::start(const std::string& program, const GatewayPolicy& policy,
                               const std::string& credential, UniqueFd listener, UniqueFd tunnels) {
  TRY(Secret setup, encode_setup(policy, credential));
  TRY(std::string filter, compile_gateway_filter());
  TRY(UniqueFd filter_file, make_sealed_memfd("filter", filter));
  TRY(Pipe setup_pipe, make_pipe());
  TRY(Pipe events, make_pipe());
  // Written before anybody reads, into the pipe's own buffer: this side can neither block on a child that
  // hangs nor get SIGPIPE from one that died.
  TRY_VOID(set_nonblocking(setup_pipe.write.get(), true));
  TRY_VOID(write_all(setup_pipe.write.get(), setup.view()));
  setup.wipe();
  UniqueFd names;
  TRY(Child resolver, start_resolver(program, policy, &names));

  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-gateway"};
  options.fds = {{2, 2},
                 {setup_pipe.read.get(), kSetupFd},
                 {listener.get(), kListenerFd},
                 {events.write.get(), kEventsFd},
                 {filter_file.get(), kFilterFd}};
  if (names.valid()) options.fds.push_back({names.get(), kNamesFd});
  if (tunnels.valid()) options.fds.push_back({tunnels.get(), kTunnelFd});
  TRY(Child child, spawn(options));
  setup_pipe.read.reset();
  setup_pipe.write.reset();
  events.write.reset();
  listener.reset();
  tunnels.reset();
  names.reset();

  TRY(std::string line, read_first_line(events.read.get()));
  if (line.empty()) {
    TRY(ExitStatus status, child.wait(kStartLimit));
    return make_error(Code::internal, "the gateway ended while starting: " + status.describe());
  }
  TRY(Confinement confinement, read_first(line));
  return Gateway(std::move(child), std::move(resolver), std::move(events.read), confinement);
}

}  // namespace cofferdam::egress
