#include "egress/gateway.h"

#include <chrono>
#include <utility>

#include "base/io.h"
#include "contract/json.h"
#include "egress/gateway_setup.h"

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

Status check_first_line(const std::string& line) {
  TRY(contract::Json json, contract::parse_json(line, kMaxFirstLine));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  if (in.has("error")) {
    std::string text = in.text("error", {1, kMaxFirstLine});
    if (!fault.failed()) return make_error(Code::config, text);
  } else {
    in.boolean("ready");
  }
  in.finish();
  if (fault.failed()) return fault.error().with("the gateway's first line");
  return {};
}

}  // namespace

Result<Gateway> Gateway::start(const std::string& program, const GatewayPolicy& policy,
                               const std::string& credential, UniqueFd listener) {
  TRY(Secret setup, encode_setup(policy, credential));
  TRY(Pipe setup_pipe, make_pipe());
  TRY(Pipe events, make_pipe());
  // Written before anybody reads, into the pipe's own buffer: this side can neither block on a child that
  // hangs nor get SIGPIPE from one that died.
  TRY_VOID(set_nonblocking(setup_pipe.write.get(), true));
  TRY_VOID(write_all(setup_pipe.write.get(), setup.view()));
  setup.wipe();

  SpawnOptions options;
  options.program = program;
  options.argv = {program, "internal-gateway"};
  options.fds = {{2, 2}, {setup_pipe.read.get(), 3}, {listener.get(), 4}, {events.write.get(), 5}};
  TRY(Child child, spawn(options));
  setup_pipe.read.reset();
  setup_pipe.write.reset();
  events.write.reset();
  listener.reset();

  TRY(std::string line, read_first_line(events.read.get()));
  if (line.empty()) {
    TRY(ExitStatus status, child.wait(kStartLimit));
    return make_error(Code::internal, "the gateway ended while starting: " + status.describe());
  }
  TRY_VOID(check_first_line(line));
  return Gateway(std::move(child), std::move(events.read));
}

}  // namespace cofferdam::egress
