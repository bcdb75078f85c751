#include "egress/broker.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/io.h"
#include "contract/json.h"
#include "egress/first_line.h"

namespace cofferdam::egress {
namespace {

// A command may take 30 seconds, a lock 60, an endpoint 30.
constexpr auto kStartLimit = std::chrono::seconds(130);

// What the programs that keep secrets need to find their user's: data, so that nothing else comes along.
constexpr const char* kCommandVariables[] = {"HOME",
                                             "PATH",
                                             "USER",
                                             "LOGNAME",
                                             "LANG",
                                             "LC_ALL",
                                             "TZ",
                                             "TMPDIR",
                                             "GNUPGHOME",
                                             "SSH_AUTH_SOCK",
                                             "XDG_RUNTIME_DIR",
                                             "XDG_CONFIG_HOME",
                                             "XDG_DATA_HOME",
                                             "DBUS_SESSION_BUS_ADDRESS",
                                             "PASSWORD_STORE_DIR"};

std::vector<std::string> command_environment() {
  std::vector<std::string> out;
  for (const char* name : kCommandVariables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    if (value != nullptr) out.push_back(std::string(name) + "=" + value);
  }
  return out;
}

Result<CredentialKind> read_ready(const contract::Json& line) {
  contract::JsonFault fault;
  contract::ObjectReader in(line, "$", &fault);
  auto kind = credential_kind_from_name(in.text("ready", {1, 64}));
  if (!kind.has_value()) in.fail("ready", "is no kind of credential");
  in.finish();
  if (fault.failed()) return fault.error().with("the broker's first line");
  return *kind;
}

}  // namespace

Result<Broker> Broker::start(const std::string& program, BrokerSetup setup) {
  TRY(Secret bytes, encode_broker_setup(setup));
  setup.value.wipe();
  TRY(Pipe setup_pipe, make_pipe());
  TRY(Pipe report, make_pipe());
  TRY(SocketPair sockets, make_seqpacket_pair());
  // As with the gateway: into the pipe's own buffer, before anybody reads.
  TRY_VOID(set_nonblocking(setup_pipe.write.get(), true));
  TRY_VOID(write_all(setup_pipe.write.get(), bytes.view()));
  bytes.wipe();

  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-broker"};
  if (setup.source == contract::CredentialSource::command) options.env = command_environment();
  // resolv.conf(5): a name server that does not answer costs seconds, not half a minute.
  if (setup.source == contract::CredentialSource::file) options.env = {"RES_OPTIONS=timeout:2 attempts:2"};
  options.fds = {{setup_pipe.read.get(), 3}, {sockets.theirs.get(), 4}, {report.write.get(), 5}};
  TRY(Child child, spawn(options));
  setup_pipe.read.reset();
  setup_pipe.write.reset();
  report.write.reset();
  sockets.theirs.reset();

  TRY(contract::Json line, read_first_line("the broker", report.read.get(), &child, kStartLimit));
  TRY(CredentialKind kind, read_ready(line));
  return Broker(std::move(child), std::move(sockets.ours), kind);
}

}  // namespace cofferdam::egress
