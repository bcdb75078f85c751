#include "cli/log_text.h"

#include <gtest/gtest.h>

namespace cofferdam::cli {
namespace {

std::string line(const std::string& type, const std::string& data) {
  return log_line({"a", 1, Timestamp{1'000}, type, data});
}

TEST(LogText, EveryEventHasOneLine) {
  EXPECT_EQ(line("started", "{}"), "1970-01-01T00:00:01.000Z  started\n");
  EXPECT_EQ(line("finished", R"({"cause":"exit","outcome":"completed"})"),
            "1970-01-01T00:00:01.000Z  finished         cause exit, outcome completed\n");
  EXPECT_EQ(line("agent", R"({"kind":"tool-call","data":{"name":"Bash","input":{"command":"make"}}})"),
            "1970-01-01T00:00:01.000Z  agent            tool-call: Bash make\n");
  EXPECT_EQ(line("agent", R"({"kind":"usage","data":{"input_tokens":3}})"),
            "1970-01-01T00:00:01.000Z  agent            usage: input_tokens 3\n");
  EXPECT_EQ(line("agent", "{}"), "1970-01-01T00:00:01.000Z  agent\n");
  EXPECT_EQ(line("egress",
                 R"({"method":"POST","path":"/v1/messages","rule":"messages","denied":false,"status":200,)"
                 R"("response_bytes":10,"host":"","port":0})"),
            "1970-01-01T00:00:01.000Z  egress           POST /v1/messages (messages), status 200, "
            "response_bytes 10\n");
  EXPECT_EQ(
      line("egress", R"({"method":"CONNECT","host":"h.example","port":443,"denied":true,"rule":"host"})"),
      "1970-01-01T00:00:01.000Z  egress           denied: CONNECT h.example:443 (host)\n");
}

TEST(LogText, WhatAnAgentWroteIsShownAndNothingMore) {
  const std::string shown =
      line("agent", R"({"kind":"message","data":{"text":"one\ntwo \u001b[2J \u202e end"}})");
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\xe2\x80\xae"), std::string::npos) << shown;
  EXPECT_NE(shown.find("message: one two "), std::string::npos) << shown;
  EXPECT_EQ(shown.find('\n'), shown.size() - 1);
  EXPECT_LT(
      line("agent", R"({"kind":"message","data":{"text":")" + std::string(100'000, 'x') + "\"}}").size(),
      1500U);
}

TEST(LogText, OutcomeOfWhatHasEnded) {
  ledger::Attempt attempt;
  attempt.id = "a-1";
  EXPECT_EQ(outcome_line(attempt), "");
  attempt.outcome = contract::Outcome::limit;
  EXPECT_EQ(outcome_line(attempt), "limit  a-1\n");
}

}  // namespace
}  // namespace cofferdam::cli
