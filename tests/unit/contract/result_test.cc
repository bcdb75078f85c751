#include "contract/result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "contract/json.h"

namespace cofferdam::contract {
namespace {

ResultRecord example() {
  ResultRecord out;
  out.attempt_id = "a-1";
  out.invocation_sha256 = std::string(64, '1');
  out.phase = Phase::implementation;
  out.outcome = Outcome::limit;
  out.cause = {"deadline", "30 minutes are over", {5}};
  out.process = {std::nullopt, 9, Timestamp{1}, Timestamp{2}};
  out.cancel = CancelFacts{{3}, "stdin", "enough"};
  out.settlement = {Timestamp{4}, true, 12};
  out.answer = "42";
  out.summary = "did it";
  out.change = {std::string(40, 'a'),
                std::string(40, 'b'),
                std::string(40, 'c'),
                "refs/heads/x",
                {},
                1,
                {},
                2,
                3,
                {"a.o"}};
  out.change.commits = {{std::string(40, 'b'), std::string(40, 'c'), {1000}, "end"}};
  out.storage = StorageFacts{"image", 5, "checkout", "the overlay cannot remove a folder"};
  out.source = SourceFacts{"submodule", true, false, 1, 2, 3, 4};
  out.change.files = {{"a/b", "added"}};
  out.change.findings = {{"nested-git", "x/.git", "dropped"}};
  out.usage = {1, 2, 3, 0.25, 0.5};
  out.resources = {1, 2, 3, 4};
  out.egress = {5, 6, {{"registry.example", 443, 1, 2, 3, 4}}};
  out.controls = {{"network", true, true, "inside probe"}};
  out.publication = {"none", "the attempt is not completed"};
  out.agent = {"claude", "2.0.0", "m"};
  out.vendor_upstream = "https://vendor.example";
  out.clone = CloneIdentity{
      "/r/.git", std::string(40, 'a'), std::string(40, 'd'), std::string(40, 'b'), History::none,
      "sha1",    std::string(64, '2')};
  out.context = CapturedContext{"n", 1, std::string(64, '3')};
  out.chain_head = std::string(64, '4');
  return out;
}

TEST(Result, GoesThereAndBack) {
  const std::string line = encode_result(example());
  auto decoded = decode_result(line);
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_EQ(encode_result(*decoded), line);
  EXPECT_EQ(decoded->outcome, Outcome::limit);
  EXPECT_EQ(decoded->process.signal, 9);
  EXPECT_EQ(decoded->process.exit_code, std::nullopt);
  EXPECT_EQ(decoded->cancel->by, "stdin");
  EXPECT_EQ(decoded->change.files.at(0).path, "a/b");
  EXPECT_EQ(decoded->usage.cost_usd, 0.25);
  EXPECT_EQ(decoded->usage.agent_cost_usd, 0.5);
  EXPECT_TRUE(*decoded->clone == *example().clone);
  EXPECT_TRUE(*decoded->source == *example().source);
  EXPECT_EQ(decoded->storage->tree, "checkout");
  EXPECT_EQ(decoded->change.commits.at(0).by, "end");
  EXPECT_EQ(decoded->change.ignored, std::vector<std::string>{"a.o"});
  EXPECT_TRUE(*decoded->context == *example().context);
}

TEST(Result, OfAnAttemptThatNeverStartedIsReadable) {
  ResultRecord out;
  out.attempt_id = "a";
  out.invocation_sha256 = std::string(64, '1');
  out.cause.control = "storage";
  out.agent.name = "command";
  auto decoded = decode_result(encode_result(out));
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_EQ(decoded->publication.state, "none");
  EXPECT_EQ(decoded->chain_head, "");
}

TEST(Result, AnyBytesOfAnAgentAreWrittenReadably) {
  std::mt19937_64 random(7);
  auto bytes = [&random](std::size_t length) {
    std::string out;
    for (std::size_t i = 0; i < length; ++i) out.push_back(static_cast<char>(random() % 256));
    return out;
  };
  for (int round = 0; round < 200; ++round) {
    ResultRecord out = example();
    out.answer = bytes(200);
    out.summary = bytes(200);
    out.cause.detail = bytes(9000);
    out.change.files = {
        {bytes(40), "added"}, {"bad\xFFname", "deleted"}, {std::string("\x1b[2J"), "modified"}};
    out.change.findings = {{"special-file", bytes(50), "reported"}};
    out.publication.reason = bytes(30);
    auto decoded = decode_result(encode_result(out));
    ASSERT_TRUE(decoded) << decoded.error().line();
    EXPECT_EQ(decoded->change.files.at(1).path, "bad\uFFFDname");
    EXPECT_EQ(decoded->change.files.at(2).path, "\x1b[2J");
  }
}

TEST(Result, ListsAndNumbersAreBounded) {
  ResultRecord out = example();
  out.change.files.assign(10'500, {"f", "added"});
  out.change.file_count = 10'500;
  out.usage.input_tokens = ~0ULL;
  out.usage.cost_usd = std::nan("");
  out.usage.agent_cost_usd = -1;
  auto decoded = decode_result(encode_result(out));
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_EQ(decoded->change.files.size(), 10'000U);
  EXPECT_EQ(decoded->change.file_count, 10'500U);
  EXPECT_EQ(decoded->usage.input_tokens, kMaxJsonInteger);
  EXPECT_EQ(decoded->usage.cost_usd, std::nullopt);
  EXPECT_EQ(decoded->usage.agent_cost_usd, std::nullopt);

  out.change.files.assign(10'000, {std::string(4000, '\x01'), "added"});
  const std::string line = encode_result(out);
  EXPECT_LT(line.size(), 5U << 20U);
  EXPECT_TRUE(decode_result(line));
}

TEST(Result, InfiniteCostIsNoCost) {
  ResultRecord out = example();
  out.usage.cost_usd = INFINITY;
  EXPECT_NE(encode_result(out).find("\"cost_usd\":null"), std::string::npos);
  out.usage.cost_usd = -1;
  EXPECT_NE(encode_result(out).find("\"cost_usd\":null"), std::string::npos);
}

}  // namespace
}  // namespace cofferdam::contract
