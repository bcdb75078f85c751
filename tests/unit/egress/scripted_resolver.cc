#include "unit/egress/scripted_resolver.h"

#include <fcntl.h>

#include <map>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "egress/resolver.h"

namespace cofferdam::egress::testing {
namespace {

using Script = std::map<std::string, std::vector<std::vector<std::string>>>;

Script parse(const std::string& text) {
  Script script;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words = split(line, ' ');
    if (words.empty() || words.front().empty()) continue;
    script[words.front()].emplace_back(words.begin() + 1, words.end());
  }
  return script;
}

}  // namespace

int resolver_for(const std::string& program) {
  const std::string dir = program.substr(0, program.rfind('/'));
  auto answers = read_file(dir + "/answers", 65536);
  if (!answers) return resolver_main();
  Script script = parse(*answers);
  auto log = open_file(dir + "/queries", O_WRONLY | O_CREAT | O_APPEND);
  UniqueFd socket(3);
  if (!receive_message(socket.get(), kMaxResolverMessage)) return 1;
  while (log) {
    auto message = receive_message(socket.get(), kMaxResolverMessage);
    if (!message || message->closed) return 0;
    auto query = decode_resolver_query(message->bytes);
    if (!query || !write_all(log->get(), query->host + "\n")) return 1;
    auto& lines = script[query->host];
    ResolverAnswer answer{query->id, lines.empty() ? std::vector<std::string>() : lines.front()};
    if (lines.size() > 1) lines.erase(lines.begin());
    if (!send_message(socket.get(), encode_resolver_answer(answer))) return 1;
  }
  return 1;
}

std::vector<std::string> queries_in(const std::string& dir) {
  auto text = read_file(dir + "/queries", 65536);
  if (!text) return {};
  std::vector<std::string> hosts = split(*text, '\n');
  if (!hosts.empty() && hosts.back().empty()) hosts.pop_back();
  return hosts;
}

}  // namespace cofferdam::egress::testing
