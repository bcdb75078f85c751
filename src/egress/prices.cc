#include "egress/prices.h"

#include <algorithm>

namespace cofferdam::egress {
namespace {

struct Listed {
  std::string_view model;
  ModelPrice price;
};

// platform.claude.com/docs, "Pricing": input, output, cache read, cache write (5 minutes), cache write (1
// hour).
constexpr Listed kPrices[] = {
    {"claude-fable-5-1", {10'000'000, 50'000'000, 250'000, 12'500'000, 20'000'000}},
    {"claude-fable-5", {10'000'000, 50'000'000, 1'000'000, 12'500'000, 20'000'000}},
    {"claude-opus-5-5", {4'000'000, 20'000'000, 200'000, 5'000'000, 8'000'000}},
    {"claude-opus-5", {5'000'000, 25'000'000, 500'000, 6'250'000, 10'000'000}},
    {"claude-opus-4-8", {5'000'000, 25'000'000, 500'000, 6'250'000, 10'000'000}},
    {"claude-opus-4-7", {5'000'000, 25'000'000, 500'000, 6'250'000, 10'000'000}},
    {"claude-opus-4-6", {5'000'000, 25'000'000, 500'000, 6'250'000, 10'000'000}},
    {"claude-opus-4-5", {5'000'000, 25'000'000, 500'000, 6'250'000, 10'000'000}},
    {"claude-sonnet-5-5", {2'000'000, 10'000'000, 200'000, 2'500'000, 4'000'000}},
    {"claude-sonnet-5", {2'000'000, 10'000'000, 200'000, 2'500'000, 4'000'000}},
    {"claude-sonnet-4-6", {3'000'000, 15'000'000, 300'000, 3'750'000, 6'000'000}},
    {"claude-haiku-4-5", {1'000'000, 5'000'000, 100'000, 1'250'000, 2'000'000}},
};

constexpr std::uint64_t kMillion = 1'000'000;

// Rounded up; the parts cannot overflow for any count that a usage scanner lets through.
std::uint64_t part(std::uint64_t tokens, std::uint64_t price) {
  return tokens / kMillion * price + (tokens % kMillion * price + kMillion - 1) / kMillion;
}

bool is_date(std::string_view text) {
  return text.size() == 9 && text.front() == '-' &&
         std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<ModelPrice> listed_price(std::string_view model) {
  constexpr std::string_view kWindow = "[1m]";
  if (model.size() > kWindow.size() && model.substr(model.size() - kWindow.size()) == kWindow) {
    model.remove_suffix(kWindow.size());
  }
  for (const Listed& entry : kPrices) {
    if (model.substr(0, entry.model.size()) != entry.model) continue;
    const std::string_view rest = model.substr(entry.model.size());
    if (rest.empty() || is_date(rest)) return entry.price;
  }
  return std::nullopt;
}

std::uint64_t cost_micros(const ModelPrice& price, const TokenUsage& usage) {
  const std::uint64_t cached = usage.cache_read + usage.cache_write;
  const std::uint64_t long_writes = std::min(usage.cache_write_1h, usage.cache_write);
  return part(usage.input - std::min(usage.input, cached), price.input) + part(usage.output, price.output) +
         part(usage.cache_read, price.cache_read) + part(usage.cache_write - long_writes, price.cache_write) +
         part(long_writes, price.cache_write_1h);
}

}  // namespace cofferdam::egress
