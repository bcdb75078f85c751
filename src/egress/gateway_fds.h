// The descriptors that the gateway is started with. Everything else is closed.
#pragma once

#include <cstddef>

#include "contract/destination.h"

namespace cofferdam::egress {

inline constexpr int kSetupFd = 3;     // the policy, read to the end
inline constexpr int kListenerFd = 4;  // the vendor's listener in the box; absent without a vendor
inline constexpr int kEventsFd = 5;    // written
inline constexpr int kFilterFd = 6;    // the system-call filter, read to the end
inline constexpr int kBrokerFd = 7;    // towards the vendor's broker; absent without a vendor
inline constexpr int kNamesFd = 8;     // towards the resolver; absent when no name is needed
inline constexpr int kTunnelFd = 9;    // the allow-list's listener in the box; absent without destinations
inline constexpr int kCaptureFd = 10;  // bodies are appended to it; absent unless the user asked
// Towards the brokers of the destinations that have a credential, in their order.
inline constexpr int kFirstDestinationFd = 11;
inline constexpr int kLastFd =
    kFirstDestinationFd + static_cast<int>(contract::kMaxDestinationCredentials) - 1;

}  // namespace cofferdam::egress
