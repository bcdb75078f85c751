#pragma once

#include <cstdint>
#include <vector>

namespace cofferdam::init {

// Brings the loopback interface of a fresh network namespace up, opens one listening TCP socket per port on
// 127.0.0.1 and hands each to the supervisor (SCM_RIGHTS). Nothing of them stays in the box.
void set_up_network(const std::vector<std::uint64_t>& ports);

}  // namespace cofferdam::init
