#include "init/client.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/io.h"
#include "base/text.h"

namespace cofferdam::init_client {

Result<InitProcess> start_init(const InitOptions& options, const plan::Plan& plan) {
  TRY(SocketPair control, make_seqpacket_pair());
  TRY(UniqueFd bytes, make_sealed_memfd("plan", plan::encode_plan(plan)));
  auto program = open_file(options.program, O_RDONLY);
  if (!program) {
    return make_error(Code::missing_tool, "cannot open " + options.program,
                      "cofferdam-init belongs beside cofferdam; build or install it again");
  }
  SpawnOptions spawning;
  spawning.program = options.program;
  spawning.program_fd = program->get();
  spawning.argv = {"cofferdam-init"};
  spawning.fds = options.fds;
  spawning.fds.push_back({control.theirs.get(), plan::kControlFd});
  spawning.fds.push_back({bytes.get(), plan::kPlanFd});
  spawning.run_as = options.run_as;
  spawning.join_fds = options.join_fds;
  spawning.group_fd = options.group_fd;
  spawning.die_with_parent = options.die_with_parent;
  TRY(Child child, spawn(spawning));
  return InitProcess{std::move(child), std::move(control.ours)};
}

Result<InitMessage> receive(int control) {
  TRY(Message message, receive_message(control, plan::kMaxMessage));
  InitMessage out;
  if (message.closed) return out;
  out.kind = message.bytes.front();
  std::string_view rest = std::string_view(message.bytes).substr(1);
  while (true) {
    std::size_t end = rest.find('\0');
    out.fields.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  out.fds = std::move(message.fds);
  return out;
}

Status send_order(int control, char order) {
  return send_message(control, std::string_view(&order, 1));
}

Error setup_error(const std::string& box, const InitMessage& message) {
  std::string step = message.fields.empty() ? "unknown step" : printable(message.fields[0], 200);
  auto number = parse_number(message.fields.size() < 2 ? "" : message.fields[1]);
  Error error =
      sys_error(fmt::format("cannot set up the {} box: {}", box, step), static_cast<int>(number.value_or(0)));
  if (step == "create a user namespace" || step == "write uid_map") {
    error.code = Code::unsupported_host;
    error.hint = "this host does not let you create user namespaces; see 'cofferdam doctor'";
  }
  return error;
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  if (error != std::errc() || !whole || value > INT64_MAX) return std::nullopt;
  return value;
}

}  // namespace cofferdam::init_client
