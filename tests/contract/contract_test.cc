// Every fixture, and mutants of the valid ones, through the decoders.
#include <gtest/gtest.h>

#include <ostream>

#include "base/text.h"
#include "contract/decoders.h"
#include "contract/invocation.h"
#include "contract/json.h"

namespace cofferdam::testing {

// Part of the names of the ctest cases: they must not hold addresses.
void PrintTo(const Decoder& decoder, std::ostream* out);
void PrintTo(const Decoder& decoder, std::ostream* out) {
  *out << decoder.kind;
}

namespace {

const std::string kFixtures = COFFERDAM_SOURCE_DIR "/contracts/fixtures";

class Contract : public ::testing::TestWithParam<Decoder> {
 protected:
  std::vector<Fixture> fixtures(bool valid) {
    auto found = read_fixtures(kFixtures, GetParam().kind, valid);
    EXPECT_TRUE(found) << found.error().line();
    return found ? *std::move(found) : std::vector<Fixture>();
  }
};

TEST_P(Contract, AcceptsEveryValidFixture) {
  const auto found = fixtures(true);
  ASSERT_FALSE(found.empty());
  for (const Fixture& fixture : found) {
    Status verdict = GetParam().accept(fixture.bytes);
    EXPECT_TRUE(verdict) << fixture.name << ": " << verdict.error().line();
  }
}

TEST_P(Contract, RefusesEveryInvalidFixtureWithAPath) {
  const auto found = fixtures(false);
  ASSERT_GE(found.size(), 25U);
  for (const Fixture& fixture : found) {
    Status verdict = GetParam().accept(fixture.bytes);
    ASSERT_FALSE(verdict) << fixture.name;
    EXPECT_TRUE(starts_with(verdict.error().what, "$")) << fixture.name << ": " << verdict.error().what;
    EXPECT_NE(verdict.error().what.find(": "), std::string::npos)
        << fixture.name << ": " << verdict.error().what;
    EXPECT_EQ(printable(verdict.error().what, 4096), verdict.error().what) << fixture.name;
  }
}

TEST_P(Contract, EncodingIsStable) {
  for (const Fixture& fixture : fixtures(true)) {
    auto once = GetParam().reencode(fixture.bytes);
    ASSERT_TRUE(once) << fixture.name;
    if (once->empty()) continue;
    auto twice = GetParam().reencode(*once);
    ASSERT_TRUE(twice) << fixture.name << ": " << twice.error().line();
    EXPECT_EQ(*once, *twice) << fixture.name;
    EXPECT_EQ(once->find('\n'), std::string::npos) << fixture.name;
  }
}

// Whatever is changed in a document: a verdict, never an exception, and never a document that is accepted but
// cannot be written and read again.
TEST_P(Contract, MutantsAreDecided) {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  std::size_t documents = 0;
  for (const Fixture& fixture : fixtures(true)) {
    if (fixture.bytes.size() > 4096) continue;  // many times the same
    if (++documents > 2) break;
    for (const std::string& mutant : mutants(fixture.bytes, 200)) {
      auto once = GetParam().reencode(mutant);
      if (!once) {
        ++refused;
        EXPECT_TRUE(starts_with(once.error().what, "$")) << mutant << "\n" << once.error().what;
        continue;
      }
      ++accepted;
      if (!once->empty()) {
        EXPECT_TRUE(GetParam().accept(*once)) << mutant;
      }
    }
  }
  EXPECT_GT(accepted, 0U);
  EXPECT_GT(refused, accepted);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Contract, ::testing::ValuesIn(decoders()), [](const auto& instance) {
  std::string name = instance.param.kind;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

// Nothing of an event or a result is dropped on the way through the value.
TEST(ContractRoundTrip, KeepsEveryKey) {
  for (const Decoder& decoder : decoders()) {
    if (std::string(decoder.kind) != "event" && std::string(decoder.kind) != "result") continue;
    auto found = read_fixtures(kFixtures, decoder.kind, true);
    ASSERT_TRUE(found);
    for (const Fixture& fixture : *found) {
      auto before = contract::parse_json(fixture.bytes, 16U << 20U);
      auto encoded = decoder.reencode(fixture.bytes);
      ASSERT_TRUE(before && encoded) << fixture.name;
      auto after = contract::parse_json(*encoded, 16U << 20U);
      ASSERT_TRUE(after) << fixture.name;
      EXPECT_TRUE(*before == *after) << fixture.name << "\n" << *encoded;
    }
  }
}

TEST(ContractRoundTrip, InvocationIsTheSameAfterItsCanonicalForm) {
  auto found = read_fixtures(kFixtures, "invocation", true);
  ASSERT_TRUE(found);
  for (const Fixture& fixture : *found) {
    auto first = contract::decode_invocation(fixture.bytes);
    ASSERT_TRUE(first) << fixture.name;
    auto second = contract::decode_invocation(first->canonical());
    ASSERT_TRUE(second) << fixture.name;
    EXPECT_TRUE(**first == **second) << fixture.name;
    EXPECT_EQ(first->sha256(), second->sha256()) << fixture.name;
  }
}

}  // namespace
}  // namespace cofferdam::testing
