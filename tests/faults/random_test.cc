// Kills of the supervisor at random moments, by seed.
#include <random>
#include <tuple>

#include "faults/fixture.h"

namespace cofferdam::test {
namespace {

// COFFERDAM_FAULT_SEEDS: how many of each user (default 30).
std::vector<int> seeds() {
  const char* wanted = ::getenv("COFFERDAM_FAULT_SEEDS");  // NOLINT(concurrency-mt-unsafe)
  std::vector<int> all(static_cast<std::size_t>(wanted == nullptr ? 30 : std::max(1, std::atoi(wanted))));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

class RandomKill : public Faults, public ::testing::WithParamInterface<std::tuple<User, int>> {
 protected:
  User user() const override { return std::get<0>(GetParam()); }
};

TEST_P(RandomKill, LosesNothing) {
  std::mt19937 random(static_cast<unsigned>(std::get<1>(GetParam())) * 7919U + 17U);
  mutable_world().extra_env.push_back("COFFERDAM_FAILPOINT_DIR=" + notes_);
  // How long an undisturbed attempt takes here and now, so that the kill falls into it.
  const auto start = std::chrono::steady_clock::now();
  const RunOutcome control = world().cofferdam(command("control", "echo made > made.txt"));
  ASSERT_EQ(control.status.code, 0) << control.err;
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const auto delay = std::uniform_int_distribution<std::int64_t>(0, took.count() * 11 / 10)(random);
  Running running(world(), command("victim", "echo made > made.txt"));
  // The moment of the kill is what is varied, not something that is waited for.
  ::usleep(static_cast<useconds_t>(delay));
  running.child().signal(SIGKILL);
  const RunOutcome killed = running.finish();
  SCOPED_TRACE("killed after " + std::to_string(delay) + " of " + std::to_string(took.count()) +
               " microseconds");
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  auto ledger = open_ledger();
  ASSERT_TRUE(ledger);
  auto record = ledger->find("victim");
  ASSERT_TRUE(record);
  if (!record->has_value()) {
    EXPECT_FALSE(exists(world().state() + "/attempts/victim")) << "killed before the admission";
    return;
  }
  const contract::ResultRecord result = expect_closed("victim");
  EXPECT_TRUE(result.outcome == Outcome::completed || result.outcome == Outcome::lost)
      << result.cause.control << ": " << result.cause.detail << "; " << result.publication.reason;
  if (result.process.exit_code == 0) {
    EXPECT_NE(diff("victim").find("+made"), std::string::npos) << "the program had ended: its work is there";
  }
  EXPECT_EQ(result.outcome == Outcome::completed, result.change.ref.has_value());
  expect_settled_for_good("victim");
}

std::string seed_name(const ::testing::TestParamInfo<std::tuple<User, int>>& info) {
  return user_name(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKill,
                         ::testing::Combine(::testing::Values(User::rootless, User::root),
                                            ::testing::ValuesIn(seeds())),
                         seed_name);

}  // namespace
}  // namespace cofferdam::test
