// The machine's own registries, reached from a box through the allow-list. Which these are, npm and apt say
// when the test runs; they are never printed, and what holds them goes with the test's folder.
#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/text.h"
#include "contract/destination.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

constexpr const char* kPackage = "is-number@7.0.0";  // small, and depends on nothing

struct Registry {
  bool plain = false;
  contract::Destination at;
  std::string url;
};

std::optional<Registry> parse_registry(const std::string& url) {
  Registry out;
  out.plain = starts_with(url, "http://");
  if (!out.plain && !starts_with(url, "https://")) return std::nullopt;
  const std::size_t start = url.find("//") + 2;
  auto parsed = contract::parse_destination(url.substr(start, url.find('/', start) - start));
  if (!parsed) return std::nullopt;
  out.at = *parsed;
  const bool has_port = url.substr(start, url.find('/', start) - start).find(':') != std::string::npos;
  if (out.plain && !has_port) out.at.port = 80;
  out.url = url;
  return out;
}

// One range for each address that it has now: a mirror may be in a private network.
std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> out;
  addrinfo* list = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return out;
  for (const addrinfo* one = list; one != nullptr && out.size() < contract::kMaxDestinationRanges;
       one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      if (std::find(out.begin(), out.end(), text) == out.end()) out.emplace_back(text);
    }
  }
  ::freeaddrinfo(list);
  return out;
}

class RegistryTest : public EndToEnd {
 protected:
  // As the user who runs the tests, whose configuration it is.
  static std::string npm_says(const std::string& key) {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-c", "npm config get " + key};
    options.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    for (const char* name : {"HOME", "NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG",
                             "NPM_CONFIG_CAFILE", "npm_config_cafile"}) {
      const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe)
      if (value != nullptr) options.env.push_back(std::string(name) + "=" + value);
    }
    auto said = run_capture(options, "", {});
    return said && said->status.success() ? std::string(trim(said->out)) : "";
  }
  void open_at(const std::string& name, const Registry& registry, const std::vector<std::string>& addresses) {
    world().write(world().config(),
                  fmt::format("[[destinations]]\nname = \"{0}\"\nhost = \"{1}\"\nport = {2}\nplain = {3}\n"
                              "addresses = [\"{4}\"]\n[repositories.\"{5}\"]\ndestinations = [\"{0}\"]\n",
                              name, registry.at.host, registry.at.port, registry.plain,
                              join(addresses, "\", \""), world().repo()));
  }
  void skip(const std::string& reason) { skip_or_fail("registry", reason); }
};

TEST_P(RegistryTest, NpmInstallsThroughTheAllowList) {
  if (IsSkipped() || HasFatalFailure()) return;
  auto registry = parse_registry(npm_says("registry"));
  if (!registry) return skip("npm is not there, or its registry has no name");
  const std::vector<std::string> addresses = addresses_of(registry->at.host);
  if (addresses.empty()) return skip("the name of npm's registry cannot be resolved here");
  const std::string install =
      "npm install --no-audit --no-fund --ignore-scripts --no-save --fetch-retries=0 --prefix $HOME/it ";
  // A registry behind an authority of its own: its certificates are public, so the repository may hold them.
  std::string more;
  if (auto authorities = read_file(npm_says("cafile"), 4U << 20U)) {
    world().commit({{"ca.pem", *authorities}}, "authorities");
    more = "--cafile \"$PWD/ca.pem\" ";
  }
  const std::string act = more + "--registry '" + registry->url + "' " + kPackage + " > $HOME/log 2>&1; ";
  Captured control =
      world().as_user({"/bin/sh", "-c", install + act + "test -d $HOME/it/node_modules/is-number"});
  if (!control.status.success())
    return skip("npm cannot install from its registry outside of any box either");

  open_at("npm", *registry, addresses);
  const std::string look = "cat $HOME/it/node_modules/is-number/package.json";
  RunOutcome outcome = run_script(install + act + look, {"--config", world().config()});
  ASSERT_EQ(outcome.result->egress.destinations.size(), 1U);
  const contract::DestinationFacts& facts = outcome.result->egress.destinations.front();
  EXPECT_TRUE(printed(outcome).find("\"is-number\"") != std::string::npos)
      << "npm did not install in the box";
  EXPECT_GT(facts.connections, 0U);
  EXPECT_GT(facts.received, facts.sent);
  RunOutcome closed = run_script(install + act + look);
  EXPECT_TRUE(printed(closed).find("\"is-number\"") == std::string::npos) << "the control: nothing is open";
}

// Archives of Debian packages are often served without TLS, and signed: the list's own signature is fetched.
TEST_P(RegistryTest, AptsArchiveIsReachedInPlainHttp) {
  if (IsSkipped() || HasFatalFailure()) return;
  Captured targets = world().as_user(
      {"/bin/sh", "-c", "apt-get indextargets --format '$(REPO_URI)dists/$(RELEASE)/InRelease'"});
  std::string url;
  for (const std::string& line : split(targets.out, '\n')) {
    if (url.empty() && starts_with(line, "http://")) url = line;
  }
  auto archive = parse_registry(url);
  if (!archive) return skip("apt has no archive in plain HTTP under a name");
  const std::vector<std::string> addresses = addresses_of(archive->at.host);
  const std::string fetch = "curl -sS --max-time 60 '" + url + "' 2> /dev/null | head -n 1";
  constexpr const char* expected = "-----BEGIN PGP SIGNED MESSAGE-----\n";
  if (addresses.empty() || outside(fetch).out != expected)
    return skip("apt's archive cannot be reached here");
  open_at("apt", *archive, addresses);
  RunOutcome outcome = run_script(fetch, {"--config", world().config()});
  EXPECT_TRUE(printed(outcome) == expected) << "the archive was not reached";
  ASSERT_EQ(outcome.result->egress.destinations.size(), 1U);
  EXPECT_EQ(outcome.result->egress.destinations.front().connections, 1U);
  EXPECT_TRUE(printed(run_script(fetch)) != expected) << "the control: nothing is open";
}

COFFERDAM_FOR_BOTH_USERS(RegistryTest);

}  // namespace
}  // namespace cofferdam::test
