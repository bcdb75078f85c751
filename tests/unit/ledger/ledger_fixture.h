// What the ledger's tests share: a folder of their own, invocations, results.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "ledger/ledger.h"

namespace cofferdam::ledger::testing {

inline contract::InvocationFields fields_of(const std::string& id, const std::string& word = "hello") {
  contract::InvocationFields fields;
  fields.attempt_id = id;
  fields.phase = contract::Phase::implementation;
  fields.agent = {"command", {"/bin/echo", word}};
  fields.clone.repository = "/srv/repository";
  fields.clone.head = std::string(40, 'a');
  return fields;
}

inline contract::Invocation build(contract::InvocationFields fields) {
  auto built = contract::build_invocation(std::move(fields));
  EXPECT_TRUE(built) << built.error().line();
  return *std::move(built);
}

inline contract::Invocation invocation(const std::string& id, const std::string& word = "hello") {
  return build(fields_of(id, word));
}

inline const std::string kDigest(64, 'd');

inline contract::Invocation with_context(const std::string& id, std::uint64_t version,
                                         const std::string& name = "notes") {
  contract::InvocationFields fields = fields_of(id);
  fields.context = contract::CapturedContext{name, version, kDigest};
  return build(std::move(fields));
}

inline contract::ResultRecord result_for(const contract::Invocation& invocation,
                                         const std::string& chain_head) {
  contract::ResultRecord result;
  result.attempt_id = invocation->attempt_id;
  result.invocation_sha256 = invocation.sha256();
  result.phase = invocation->phase;
  result.outcome = contract::Outcome::completed;
  result.cause = {"exit", "exit code 0", now()};
  result.change.base = invocation->clone.head;
  result.publication.state = "none";
  result.agent.name = invocation->agent.name;
  result.created_at = now();
  result.chain_head = chain_head;
  return result;
}

// Runs `body` in `count` processes that start at the same moment (when the pipe closes), and returns their
// exit codes. The parent holds no open Ledger meanwhile: one must not be carried across fork(2).
inline std::vector<int> in_processes(int count, const std::function<int(int)>& body) {
  auto start = make_pipe();
  EXPECT_TRUE(start);
  std::vector<pid_t> children;
  for (int index = 0; index < count; ++index) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      start->write.reset();
      char byte = 0;
      const ssize_t end = ::read(start->read.get(), &byte, 1);  // all go when the last writer has closed
      if (end != 0) ::_exit(126);
      ::_exit(body(index));
    }
    children.push_back(pid);
  }
  start->write.reset();
  std::vector<int> codes;
  for (pid_t pid : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "ledger.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    path_ = ledger_path(folder_->path());
  }
  Ledger open(Options options = {}) {
    auto ledger = Ledger::open(path_, std::move(options));
    EXPECT_TRUE(ledger) << ledger.error().line();
    return *std::move(ledger);
  }

  static AttemptRecord record(Ledger& ledger, const std::string& id) {
    auto found = ledger.find(id);
    EXPECT_TRUE(found && found->has_value()) << id;
    return found && found->has_value() ? **found : AttemptRecord{};
  }
  static std::string types_of(Ledger& ledger, const std::string& id) {
    auto events = ledger.events(id);
    EXPECT_TRUE(events);
    std::string out;
    for (const contract::Event& event : *events) out += (out.empty() ? "" : " ") + event.type;
    return out;
  }
  static void expect_intact(Ledger& ledger, const std::string& id) {
    auto report = ledger.verify(id);
    ASSERT_TRUE(report) << report.error().line();
    EXPECT_TRUE(report->intact) << id << ": " << report->problem;
  }
  // Gives the attempt its result.
  static void finish(Ledger& ledger, const contract::Invocation& request) {
    auto head = ledger.chain_head(request->attempt_id);
    ASSERT_TRUE(head);
    Status finished = ledger.finish(result_for(request, *head));
    ASSERT_TRUE(finished) << finished.error().line();
  }

  std::optional<TempDir> folder_;
  std::string path_;
};

}  // namespace cofferdam::ledger::testing
