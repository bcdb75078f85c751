// The price table, as data with its date, and what a request cost by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "contract/price.h"
#include "egress/usage_scanner.h"

namespace cofferdam::egress {

using contract::ModelPrice;

// When the vendors' pages said so: list prices, standard tier. A contract of your own may say otherwise; the
// configuration's [prices] come first.
inline constexpr const char* kPricesAsOf = "2026-11-30";

// By the model's exact name, or by it with a date ("-20260115") or a context window ("[1m]") behind it.
// Models whose price depends on the size of the prompt are not in the table: nullopt, as for unknown ones.
std::optional<ModelPrice> listed_price(std::string_view model);

// In millionths of a dollar, each part rounded up.
std::uint64_t cost_micros(const ModelPrice& price, const TokenUsage& usage);

}  // namespace cofferdam::egress
