#include "attempt/control.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::attempt {
namespace {

constexpr std::size_t kMaxReason = 1000;
constexpr std::size_t kMaxAnswer = 4096;
constexpr std::chrono::seconds kAnswerWithin{10};
// Two boxes, each with a bound of its own, and whoever asked before.
constexpr std::chrono::seconds kCheckpointWithin{3600};

Error not_running() {
  return make_error(Code::conflict, "the attempt is not running: its supervisor has ended, or is about to");
}

Result<UniqueFd> connect_control(const std::string& attempt_dir) {
  auto folder = open_file(attempt_dir, O_PATH | O_DIRECTORY);
  if (!folder) return not_running();
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return sys_error("cannot make a socket", errno);
  // Through /proc: a socket address holds 108 bytes, a state folder's path may be longer (unix(7)).
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/control", folder->get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const auto* generic =
      reinterpret_cast<const struct sockaddr*>(&address);  // NOLINT: what bind and connect take
  if (::connect(socket.get(), generic, sizeof address) != 0) {
    // Refused: the socket outlived its supervisor.
    if (errno == ENOENT || errno == ECONNREFUSED) return not_running();
    return sys_error("cannot reach the attempt", errno);
  }
  return socket;
}

// One line without its newline.
Result<std::string> read_answer(int socket, std::chrono::seconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  std::string line;
  while (line.size() <= kMaxAnswer) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    TRY(const bool readable, wait_readable(socket, static_cast<int>(std::max<long long>(left.count(), 0))));
    if (!readable) {
      return make_error(Code::timeout, "the attempt's supervisor did not answer",
                        "see whether its process hangs");
    }
    bool would_block = false;
    TRY(const std::string bytes, read_some(socket, kMaxAnswer, &would_block));
    if (bytes.empty() && !would_block) return not_running();  // it ended between our request and its answer
    line += bytes;
    const std::size_t newline = line.find('\n');
    if (newline != std::string::npos) return line.substr(0, newline);
  }
  return make_error(Code::protocol, "the attempt's supervisor answered with too much");
}

}  // namespace

Status request_cancel(const std::string& attempt_dir, const std::string& reason) {
  TRY(const UniqueFd socket, connect_control(attempt_dir));
  const contract::Json request = {{"cancel", {{"reason", contract::json_text(reason, kMaxReason)}}}};
  if (!write_all(socket.get(), contract::canonical(request) + "\n")) return not_running();
  TRY(const std::string answer, read_answer(socket.get(), kAnswerWithin));
  auto json = contract::parse_json(answer, kMaxAnswer);
  if (json && *json == contract::Json{{"ok", true}}) return {};
  return make_error(Code::protocol, "the attempt did not accept the request: " + printable(answer, 200));
}

Result<CheckpointMade> request_checkpoint(const std::string& attempt_dir, const std::string& reason) {
  TRY(const UniqueFd socket, connect_control(attempt_dir));
  const contract::Json request = {{"checkpoint", {{"reason", contract::json_text(reason, kMaxReason)}}}};
  if (!write_all(socket.get(), contract::canonical(request) + "\n")) return not_running();
  TRY(const std::string answer, read_answer(socket.get(), kCheckpointWithin));
  TRY(const contract::Json json, contract::parse_json(answer, kMaxAnswer));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  if (!in.boolean("ok")) {
    const std::string why = in.text("error", {0, kMaxAnswer});
    return make_error(Code::denied,
                      fault.failed() ? "the attempt did not accept the request" : printable(why, 1000));
  }
  CheckpointMade made;
  made.commit = in.maybe_text("commit", {1, 64}, contract::Absent::only_null).value_or("");
  made.tree = in.maybe_text("tree", {1, 64}, contract::Absent::only_null).value_or("");
  in.finish();
  if (fault.failed()) return fault.error();
  return made;
}

}  // namespace cofferdam::attempt
