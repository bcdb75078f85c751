// cofferdam-standin: answers like a model vendor, from a script. README.md beside this file is its manual.
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "anthropic.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "oauth.h"
#include "openai.h"
#include "record.h"
#include "script.h"
#include "server.h"
#include "tls.h"

namespace cofferdam::standin {
namespace {

constexpr const char* kHelp =
    "usage: cofferdam-standin --script FILE [options]\n"
    "Answers like Anthropic's Messages API and OpenAI's Responses API on 127.0.0.1, turn by turn from a "
    "script.\n"
    "  --script FILE         what to answer (tests/standin/README.md has the format)\n"
    "  --record FILE         one line of JSON for every request\n"
    "  --ready FILE          written when listening: {\"port\": ..., \"url\": \"https://127.0.0.1:PORT\"}\n"
    "  --ca-out FILE         the PEM certificate that a client has to trust\n"
    "  --expect-key KEY      answer 401 to any other x-api-key or bearer\n"
    "  --plain               HTTP without TLS\n"
    "  --exit-on-stdin-eof   end when standard input does\n"
    "  --help\n"
    "Ends with code 0 on SIGTERM and SIGINT.\n";

struct Options {
  std::string script;
  std::string record;
  std::string ready;
  std::string ca_out;
  std::string expect_key;
  bool plain = false;
  bool exit_on_stdin_eof = false;
  bool help = false;
};

std::optional<Options> parse_options(int argc, char** argv) {
  static const option kOptions[] = {{"script", required_argument, nullptr, 's'},
                                    {"record", required_argument, nullptr, 'r'},
                                    {"ready", required_argument, nullptr, 'y'},
                                    {"ca-out", required_argument, nullptr, 'c'},
                                    {"expect-key", required_argument, nullptr, 'k'},
                                    {"plain", no_argument, nullptr, 'p'},
                                    {"exit-on-stdin-eof", no_argument, nullptr, 'e'},
                                    {"help", no_argument, nullptr, 'h'},
                                    {nullptr, 0, nullptr, 0}};
  Options options;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (found) {
      case 's':
        options.script = optarg;
        break;
      case 'r':
        options.record = optarg;
        break;
      case 'y':
        options.ready = optarg;
        break;
      case 'c':
        options.ca_out = optarg;
        break;
      case 'k':
        options.expect_key = optarg;
        break;
      case 'p':
        options.plain = true;
        break;
      case 'e':
        options.exit_on_stdin_eof = true;
        break;
      case 'h':
        options.help = true;
        break;
      default:
        return std::nullopt;
    }
  }
  if (optind != argc || (options.script.empty() && !options.help)) return std::nullopt;
  return options;
}

// Blocked before the first thread, so that every thread has them blocked and only the descriptor gets them.
Result<UniqueFd> block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return sys_error("sigprocmask", errno);
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd.valid()) return sys_error("signalfd", errno);
  return fd;
}

// Accepts until a signal or, if asked for, the end of standard input.
Status accept_until_told(Server& server, int signals, bool watch_stdin) {
  pollfd watched[3] = {
      {signals, POLLIN, 0}, {server.listener_fd(), POLLIN, 0}, {watch_stdin ? STDIN_FILENO : -1, POLLIN, 0}};
  while (true) {
    if (::poll(watched, 3, -1) < 0) {
      if (errno == EINTR) continue;
      return sys_error("poll", errno);
    }
    if (watched[0].revents != 0) return {};
    if (watched[1].revents != 0) server.accept_one();
    if (watched[2].revents == 0) continue;
    char unwanted[4096];
    if (::read(STDIN_FILENO, unwanted, sizeof unwanted) <= 0) return {};
  }
}

Status run(const Options& options) {
  TRY(UniqueFd signals, block_signals());
  TRY(Script script, load_script(options.script));
  TRY(Recorder recorder, Recorder::open(options.record));
  TokenBook tokens(script.oauth);
  auto oauth = make_oauth_api(&tokens);
  auto openai = make_openai_api(script, options.expect_key, &tokens);
  auto anthropic = make_anthropic_api(std::move(script), options.expect_key, &tokens);
  ServerOptions server_options;
  // The last one answers for everything under /v1/ that is nobody else's.
  server_options.apis = {oauth.get(), openai.get(), anthropic.get()};
  server_options.recorder = &recorder;
  if (!options.plain) {
    TRY(Identity identity, make_identity());
    if (!options.ca_out.empty()) TRY_VOID(write_file_atomic(options.ca_out, identity.ca_pem, 0644));
    server_options.tls = std::move(identity.context);
  }
  TRY(std::unique_ptr<Server> server, Server::listen(std::move(server_options)));
  const std::string port = std::to_string(server->port());
  const std::string url = (options.plain ? "http://127.0.0.1:" : "https://127.0.0.1:") + port;
  const std::string ready = R"({"port":)" + port + R"(,"url":")" + url + "\"}\n";
  if (!options.ready.empty()) TRY_VOID(write_file_atomic(options.ready, ready, 0644));
  return accept_until_told(*server, signals.get(), options.exit_on_stdin_eof);
}

int run_main(int argc, char** argv) {
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options || options->help) {
    std::fputs(kHelp, options ? stdout : stderr);
    return options ? 0 : 2;
  }
  const Status done = run(*options);
  if (done) return 0;
  std::fprintf(stderr, "cofferdam-standin: %s\n", done.error().line().c_str());
  return done.error().code == Code::usage ? 2 : 1;
}

}  // namespace
}  // namespace cofferdam::standin

int main(int argc, char** argv) {
  return cofferdam::standin::run_main(argc, argv);
}
