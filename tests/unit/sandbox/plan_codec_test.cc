// The plan codec: what is decoded is exactly what was encoded, and nothing else decodes.
#include <gtest/gtest.h>

#include <random>

#include "init/plan.h"

namespace cofferdam::plan {
namespace {

// Every field has a value of its own, so that two swapped ones would show.
Plan sample() {
  Plan plan;
  plan.role = Role::box;
  plan.ops = {{OpCode::dir, "", "/etc", 0755, 0, 0},
              {OpCode::file, std::string("a\0b", 3), "/etc/hosts", 1, 2, 3},
              {OpCode::tmpfs, "", "/tmp", 1ULL << 40U, 4096, 01777},
              {OpCode::device, "/host/dev/null", "/dev/null", 0x103, 0, 0}};
  plan.argv = {"/bin/sh", "-c", "exit 3", ""};
  plan.env = {"PATH=/usr/bin:/bin"};
  plan.cwd = "/workspace";
  plan.seccomp = std::string("\x06\0\0\0\0\0\xff\x7f", 8);
  plan.listeners = {8080, 0xFFFFFFFFFFFFFFFFULL};
  plan.program_fds = {3, 4};
  plan.masked = {"/proc/kcore"};
  plan.read_only = {"/proc/sys", "/proc/irq"};
  plan.deadline_ms = 11;
  plan.grace_ms = 12;
  plan.linger_ms = 13;
  plan.file_size_limit = 14;
  plan.open_files = 15;
  plan.expected = {1, 2, 0, 21, 22, 23, 24};
  return plan;
}

// The rule for all hostile bytes: refused, or one plan whose only encoding these bytes are.
void expect_refused_or_exact(const std::string& bytes, const std::string& what) {
  Plan plan;
  if (!decode_plan(bytes, &plan)) return;
  EXPECT_EQ(encode_plan(plan), bytes) << what;
}

bool decodes(const std::string& bytes) {
  Plan plan;
  return decode_plan(bytes, &plan);
}

void put_u32(std::string* bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) (*bytes)[at + i] = static_cast<char>((value >> (8 * i)) & 0xFFU);
}

TEST(PlanCodec, RoundTripKeepsEveryField) {
  const Plan in = sample();
  Plan out;
  ASSERT_TRUE(decode_plan(encode_plan(in), &out));
  EXPECT_EQ(encode_plan(out), encode_plan(in));
  EXPECT_EQ(out.role, Role::box);
  ASSERT_EQ(out.ops.size(), 4U);
  EXPECT_EQ(out.ops[1].a, std::string("a\0b", 3));
  EXPECT_EQ(out.ops[1].n3, 3U);
  EXPECT_EQ(out.ops[2].n1, 1ULL << 40U);
  EXPECT_EQ(out.argv, in.argv);
  EXPECT_EQ(out.env, in.env);
  EXPECT_EQ(out.cwd, in.cwd);
  EXPECT_EQ(out.seccomp, in.seccomp);
  EXPECT_EQ(out.listeners, in.listeners);
  EXPECT_EQ(out.program_fds, in.program_fds);
  EXPECT_EQ(out.masked, in.masked);
  EXPECT_EQ(out.read_only, in.read_only);
  EXPECT_EQ(out.deadline_ms, 11U);
  EXPECT_EQ(out.grace_ms, 12U);
  EXPECT_EQ(out.linger_ms, 13U);
  EXPECT_EQ(out.file_size_limit, 14U);
  EXPECT_EQ(out.open_files, 15U);
  EXPECT_EQ(out.expected.work, 1U);
  EXPECT_EQ(out.expected.metadata, 2U);
  EXPECT_EQ(out.expected.scratch_inodes, 24U);
}

TEST(PlanCodec, NothingOfAnOlderPlanRemains) {
  Plan out = sample();
  Plan keeper;
  keeper.role = Role::keeper;
  ASSERT_TRUE(decode_plan(encode_plan(keeper), &out));
  EXPECT_EQ(encode_plan(out), encode_plan(keeper));
}

TEST(PlanCodec, EveryTruncationIsRefused) {
  const std::string bytes = encode_plan(sample());
  ASSERT_TRUE(decodes(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decodes(bytes.substr(0, size))) << size << " of " << bytes.size();
  }
}

TEST(PlanCodec, AnyByteTooManyIsRefused) {
  const std::string bytes = encode_plan(sample());
  EXPECT_FALSE(decodes(bytes + std::string(1, '\0')));
  EXPECT_FALSE(decodes(std::string(1, '\0') + bytes));
  EXPECT_FALSE(decodes(bytes + bytes)) << "exactly one plan";
}

TEST(PlanCodec, EveryBitFlipIsRefusedOrExact) {
  const std::string bytes = encode_plan(sample());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    expect_refused_or_exact(flipped, "bit " + std::to_string(bit));
    if (bit < 32) {
      EXPECT_FALSE(decodes(flipped)) << "the magic number";
    }
  }
}

TEST(PlanCodec, RandomDamageIsRefusedOrExact) {
  const std::string bytes = encode_plan(sample());
  std::mt19937 random(20261130);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = bytes;
    for (unsigned i = 1 + random() % 8; i > 0; --i) {
      damaged[random() % damaged.size()] = static_cast<char>(random() & 0xFFU);
    }
    if (random() % 4 == 0) damaged.erase(random() % damaged.size(), random() % 16);
    if (random() % 4 == 0) damaged.insert(random() % damaged.size(), std::string(random() % 16, '\xff'));
    expect_refused_or_exact(damaged, "round " + std::to_string(round));
  }
}

TEST(PlanCodec, HugeCountsAndLengthsEverywhere) {
  const std::string bytes = encode_plan(sample());
  for (std::uint32_t value : {0xFFFFFFFFU, 0x80000000U, 0x7FFFFFFFU, kMaxItems + 1, kMaxItems, kMaxString + 1,
                              kMaxString, static_cast<std::uint32_t>(bytes.size())}) {
    for (std::size_t at = 4; at + 4 <= bytes.size(); ++at) {
      std::string changed = bytes;
      put_u32(&changed, at, value);
      expect_refused_or_exact(changed, "offset " + std::to_string(at));
    }
  }
}

TEST(PlanCodec, BoundsOfStringsAndListsAreExact) {
  Plan plan = sample();
  plan.cwd.assign(kMaxString, 'x');
  EXPECT_TRUE(decodes(encode_plan(plan)));
  plan.cwd.push_back('x');
  EXPECT_FALSE(decodes(encode_plan(plan)));
  plan = sample();
  plan.env.assign(kMaxItems, "");
  EXPECT_TRUE(decodes(encode_plan(plan)));
  plan.env.emplace_back();
  EXPECT_FALSE(decodes(encode_plan(plan)));
}

TEST(PlanCodec, RandomBytesBehindTheMagicNumber) {
  std::mt19937 random(7);
  const std::string magic = encode_plan(sample()).substr(0, 4);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = magic;
    for (std::size_t i = random() % 200; i > 0; --i) {
      bytes.push_back(random() % 2 == 0 ? '\0' : static_cast<char>(random() & 0xFFU));
    }
    expect_refused_or_exact(bytes, "round " + std::to_string(round));
  }
}

TEST(PlanCodec, WhatIsNoPlanIsRefused) {
  Plan plan = sample();
  plan.role = static_cast<Role>(0);
  EXPECT_FALSE(decodes(encode_plan(plan))) << "no role";
  plan.role = static_cast<Role>(3);
  EXPECT_FALSE(decodes(encode_plan(plan))) << "an unknown role";
  plan = sample();
  plan.argv.clear();
  EXPECT_FALSE(decodes(encode_plan(plan))) << "a box without a program";
  plan.role = Role::keeper;
  EXPECT_TRUE(decodes(encode_plan(plan))) << "a keeper has none";
  plan = sample();
  plan.seccomp.push_back('\0');
  EXPECT_FALSE(decodes(encode_plan(plan))) << "half a filter instruction";
  EXPECT_FALSE(decodes(""));
}

}  // namespace
}  // namespace cofferdam::plan
