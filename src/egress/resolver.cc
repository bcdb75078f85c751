#include "egress/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/io.h"
#include "contract/json.h"
#include "egress/confine.h"
#include "egress/harden.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;

constexpr int kSocketFd = 3;
constexpr std::size_t kMaxHosts = 128;
constexpr contract::TextBounds kHost{1, 253};

std::string numeric(const addrinfo& entry) {
  std::array<char, NI_MAXHOST> text{};
  int failed =
      ::getnameinfo(entry.ai_addr, entry.ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? std::string(text.data()) : std::string();
}

Status serve_queries(int socket, const ResolverSetup& setup) {
  while (true) {
    TRY(Message message, receive_message(socket, kMaxResolverMessage));
    if (message.closed) return {};
    TRY(ResolverQuery query, decode_resolver_query(message.bytes));
    const bool known = std::find(setup.hosts.begin(), setup.hosts.end(), query.host) != setup.hosts.end();
    ResolverAnswer answer{query.id, known ? look_up(query.host) : std::vector<std::string>()};
    TRY_VOID(send_message(socket, encode_resolver_answer(answer)));
  }
}

Status run(int socket) {
  TRY_VOID(harden_process(socket));
  TRY(Message first, receive_message(socket, kMaxResolverMessage));
  if (first.closed) return {};
  TRY(ResolverSetup setup, decode_resolver_setup(first.bytes));
  if (setup.run_as.has_value()) TRY_VOID(become(*setup.run_as));
  return serve_queries(socket, setup);
}

}  // namespace

std::string encode_resolver_setup(const ResolverSetup& setup) {
  Json json = {{"hosts", setup.hosts}, {"run_as", nullptr}};
  if (setup.run_as.has_value()) json["run_as"] = {{"uid", setup.run_as->uid}, {"gid", setup.run_as->gid}};
  return contract::canonical(json);
}

Result<ResolverSetup> decode_resolver_setup(std::string_view message) {
  TRY(Json json, contract::parse_json(message, kMaxResolverMessage));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  ResolverSetup setup;
  setup.hosts = in.texts("hosts", 0, kMaxHosts, kHost);
  if (auto user = in.maybe_object("run_as", contract::Absent::only_null)) {
    UserIds ids;
    ids.uid = static_cast<uid_t>(user->integer("uid", 1, INT32_MAX));
    ids.gid = static_cast<gid_t>(user->integer("gid", 1, INT32_MAX));
    user->finish();
    setup.run_as = ids;
  }
  in.finish();
  if (fault.failed()) return fault.error().with("resolver setup");
  return setup;
}

std::string encode_resolver_query(const ResolverQuery& query) {
  return contract::canonical(Json{{"id", query.id}, {"host", query.host}});
}

Result<ResolverQuery> decode_resolver_query(std::string_view message) {
  TRY(Json json, contract::parse_json(message, kMaxResolverMessage));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  ResolverQuery query;
  query.id = in.integer("id", 0, kMaxJsonInteger);
  query.host = in.text("host", kHost);
  in.finish();
  if (fault.failed()) return fault.error().with("resolver query");
  return query;
}

std::string encode_resolver_answer(const ResolverAnswer& answer) {
  return contract::canonical(Json{{"id", answer.id}, {"addresses", answer.addresses}});
}

Result<ResolverAnswer> decode_resolver_answer(std::string_view message) {
  TRY(Json json, contract::parse_json(message, kMaxResolverMessage));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  ResolverAnswer answer;
  answer.id = in.integer("id", 0, kMaxJsonInteger);
  answer.addresses = in.texts("addresses", 0, 2 * kMaxAddresses, {1, 64});
  in.finish();
  if (fault.failed()) return fault.error().with("resolver answer");
  return answer;
}

std::vector<std::string> look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  std::vector<std::string> first;
  std::vector<std::string> second;
  const int family = list->ai_family;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    std::string text = numeric(*entry);
    if (!text.empty()) (entry->ai_family == family ? first : second).push_back(std::move(text));
  }
  ::freeaddrinfo(list);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
  out.resize(std::min(out.size(), kMaxAddresses));
  return out;
}

int resolver_main() {
  UniqueFd socket(kSocketFd);
  return run(socket.get()) ? 0 : 1;
}

}  // namespace cofferdam::egress
