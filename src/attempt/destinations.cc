#include "attempt/destinations.h"

#include <fmt/core.h>

#include <utility>

namespace cofferdam::attempt {
namespace {

Result<const contract::DestinationCredential*> find_credential(const contract::Config& config,
                                                               const contract::Destination& destination) {
  for (const contract::NamedDestination& one : config.destinations) {
    const bool same = one.name == destination.credential && one.destination.is_at(destination);
    if (same && one.credential.has_value()) return &*one.credential;
  }
  return make_error(Code::denied,
                    fmt::format("the configuration has no credential \"{}\" for {}:{}",
                                destination.credential, destination.host, destination.port),
                    "name the destination, with this host and port, in [[destinations]]");
}

}  // namespace

Result<ReadiedDestinations> ready_destinations(const Host& host, const contract::Invocation& invocation) {
  ReadiedDestinations out;
  for (const contract::Destination& destination : invocation->destinations) {
    egress::Destination policy{destination, {}};
    if (!destination.credential.empty()) {
      TRY(const contract::DestinationCredential* credential, find_credential(host.config, destination));
      policy.ca_bundle = credential->ca_bundle;
      TRY(egress::BrokerSetup setup, egress::plan_broker(*credential, egress::take_variable));
      auto broker = egress::Broker::start(host.program, std::move(setup));
      if (!broker)
        return std::move(broker).error().with(fmt::format("{}:{}", destination.host, destination.port));
      out.brokers.push_back(std::move(*broker));
    }
    out.policy.push_back(std::move(policy));
  }
  return out;
}

}  // namespace cofferdam::attempt
