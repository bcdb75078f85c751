// Prices, costs and budgets, as pure functions.
#include "egress/budget.h"

#include <gtest/gtest.h>

#include "egress/prices.h"

namespace cofferdam::egress {
namespace {

TEST(Prices, NamesAreExactButForDateAndWindow) {
  ASSERT_TRUE(listed_price("claude-sonnet-5"));
  EXPECT_EQ(listed_price("claude-sonnet-5")->output, 10'000'000U);
  EXPECT_EQ(listed_price("claude-opus-4-8[1m]"), listed_price("claude-opus-4-8"));
  EXPECT_EQ(listed_price("claude-haiku-4-5-20251001"), listed_price("claude-haiku-4-5"));
  EXPECT_EQ(listed_price("claude-fable-5-1")->cache_read, 250'000U);
  for (const char* unknown : {"", "claude-sonnet-5x", "claude-sonnet-5-mini", "claude-sonnet-5-2026011",
                              "[1m]", "gpt-6.2-sol", "xclaude-sonnet-5"}) {
    EXPECT_FALSE(listed_price(unknown)) << unknown;
  }
}

TEST(Prices, EveryPartHasItsOwn) {
  const ModelPrice price{2'000'000, 10'000'000, 200'000, 2'500'000, 4'000'000};
  EXPECT_EQ(cost_micros(price, {1'000'000, 0, 0, 0, 0}), 2'000'000U);
  EXPECT_EQ(cost_micros(price, {0, 1'000'000, 0, 0, 0}), 10'000'000U);
  // The cache's parts are not paid for twice.
  EXPECT_EQ(cost_micros(price, {1'000'000, 0, 1'000'000, 0, 0}), 200'000U);
  EXPECT_EQ(cost_micros(price, {1'000'000, 0, 0, 1'000'000, 0}), 2'500'000U);
  EXPECT_EQ(cost_micros(price, {1'000'000, 0, 0, 1'000'000, 400'000}), 1'500'000U + 1'600'000U);
  EXPECT_EQ(cost_micros(price, {1, 1, 0, 0, 0}), 12U);
  EXPECT_EQ(cost_micros({1, 0, 0, 0, 0}, {1, 0, 0, 0, 0}), 1U);  // rounded up
  // Nonsense does not overflow.
  const std::uint64_t most = 1ULL << 40U;
  EXPECT_GT(cost_micros({contract::kMaxPrice, contract::kMaxPrice, 0, 0, 0}, {most, most, 0, 0, 0}), most);
  EXPECT_EQ(cost_micros(price, {0, 0, 5, 5, 9}), 1U + 20U);
}

TEST(Budget, IsOverspentOnlyBeyondIt) {
  EXPECT_EQ(overspent({}, {9, 9, 9}), nullptr);
  EXPECT_EQ(overspent({10, 0}, {0, 10, 0}), nullptr);
  EXPECT_STREQ(overspent({10, 0}, {0, 11, 0}), "tokens");
  EXPECT_EQ(overspent({0, 10}, {0, 99, 10}), nullptr);
  EXPECT_STREQ(overspent({0, 10}, {0, 99, 11}), "cost");
}

TEST(Budget, NothingMoreGoesOutWhenItIsUsedUp) {
  GatewayPolicy policy;
  policy.max_requests = 2;
  EXPECT_EQ(decide_spending(policy, {1, 999, 999}, 50).action, Action::relay);
  EXPECT_EQ(decide_spending(policy, {2, 0, 0}, 0).rule, "requests");
  policy.total_tokens = 10;
  policy.max_cost_micros = 20;
  EXPECT_EQ(decide_spending(policy, {1, 9, 19}, 0).action, Action::relay);
  for (const auto& [spent, rule] : {std::pair<Spent, const char*>{{1, 10, 0}, "tokens"},
                                    std::pair<Spent, const char*>{{1, 0, 20}, "cost"}}) {
    Decision decision = decide_spending(policy, spent, 0);
    EXPECT_EQ(decision.rule, rule);
    EXPECT_TRUE(decision.limit);
    EXPECT_EQ(decision.status, 403);
  }
}

TEST(Budget, TooManyAtATimeIsNotTheEnd) {
  GatewayPolicy policy;
  policy.max_requests = 2;
  policy.max_parallel = 3;
  EXPECT_EQ(decide_spending(policy, {}, 2).action, Action::relay);
  Decision decision = decide_spending(policy, {}, 3);
  EXPECT_EQ(decision.rule, "parallel");
  EXPECT_EQ(decision.status, 429);
  EXPECT_FALSE(decision.limit);
  EXPECT_NE(parallel_body().find(R"("retry":true,"rule":"parallel")"), std::string::npos);
}

}  // namespace
}  // namespace cofferdam::egress
