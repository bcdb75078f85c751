// Invocations for the tests of src/agent.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "contract/invocation.h"

namespace cofferdam::agent {

inline contract::InvocationFields claude_fields(contract::Phase phase) {
  contract::InvocationFields fields;
  fields.attempt_id = "t-1";
  fields.phase = phase;
  fields.agent.name = "claude";
  fields.clone.repository = "/repository";
  fields.clone.head = std::string(40, 'a');
  fields.prompt = "Do the task.";
  fields.egress = contract::Vendor::anthropic;
  fields.model = "claude-sonnet-5";
  return fields;
}

inline contract::InvocationFields codex_fields(contract::Phase phase) {
  contract::InvocationFields fields = claude_fields(phase);
  fields.agent.name = "codex";
  fields.egress = contract::Vendor::openai;
  fields.model = "gpt-6.2-sol";
  return fields;
}

inline contract::InvocationFields command_fields(const std::vector<std::string>& argv) {
  contract::InvocationFields fields = claude_fields(contract::Phase::implementation);
  fields.agent.name = "command";
  fields.agent.argv = argv;
  fields.prompt = "";
  fields.egress = contract::Vendor::none;
  fields.model = "";
  return fields;
}

inline contract::Invocation built(const contract::InvocationFields& fields) {
  Result<contract::Invocation> invocation = contract::build_invocation(fields);
  EXPECT_TRUE(invocation) << invocation.error().line();
  return *invocation;
}

}  // namespace cofferdam::agent
