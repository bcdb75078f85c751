#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {

// The box's shell: its command line has `marker`, and is not cofferdam's. -1: there is none.
inline int box_shell(const std::string& marker) {
  for (const int pid : processes_with(marker)) {
    auto line = read_file("/proc/" + std::to_string(pid) + "/cmdline", 1U << 20U);
    if (line && starts_with(*line, "/bin/sh")) return pid;
  }
  return -1;
}

// One attempt in the background, to be cancelled or killed.
class Running {
 public:
  // `in` is the standard input; -1: none.
  Running(const World& world, std::vector<std::string> args, int in = -1) {
    auto out = make_pipe();
    auto err = make_pipe();
    if (!out || !err) std::abort();
    SpawnOptions options = world.cofferdam_options(args);
    options.fds = {{out->write.get(), 1}, {err->write.get(), 2}};
    if (in >= 0) options.fds.push_back({in, 0});
    options.die_with_parent = false;
    auto child = spawn(options);
    if (!child) std::abort();
    child_ = std::move(*child);
    out_ = std::move(out->read);
    err_ = std::move(err->read);
  }
  Child& child() { return child_; }
  // Until the attempt's own standard output file holds `words`.
  static void wait_for(const std::string& file, const std::string& words) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      auto text = read_file(file, 1U << 20U);
      if (text && text->find(words) != std::string::npos) return;
      ::usleep(20'000);  // a poll of a condition, not a wait for time to pass
    }
    FAIL() << file << " never held " << words;
  }
  RunOutcome finish() {
    RunOutcome outcome;
    auto status = child_.wait(std::chrono::seconds(120));
    EXPECT_TRUE(status);
    if (status) outcome.status = *status;
    if (auto text = read_to_end(out_.get(), 64U << 20U)) outcome.out = *text;
    if (auto text = read_to_end(err_.get(), 64U << 20U)) outcome.err = *text;
    std::vector<std::string> lines = split(trim(outcome.out), '\n');
    if (!lines.empty()) {
      if (auto result = contract::decode_result(lines.back())) outcome.result = *result;
    }
    return outcome;
  }

 private:
  Child child_;
  UniqueFd out_;
  UniqueFd err_;
};

}  // namespace cofferdam::test
