#include "attempt/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <thread>

#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"

namespace cofferdam::attempt {
namespace {

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "control.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    // Deeper than the 108 bytes that a socket address holds.
    attempt_ = folder_->path() + "/" + std::string(120, 'x');
    ASSERT_TRUE(make_dirs(attempt_));
  }

  UniqueFd listen_there() {
    auto folder = open_file(attempt_, O_PATH | O_DIRECTORY);
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder->get()) + "/control";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 4), 0);
    return listener;
  }

  // What the client sent to a supervisor that answers with `answer`.
  std::string exchange(const std::string& answer, Status* outcome) {
    const UniqueFd listener = listen_there();
    std::string received;
    std::jthread supervisor([&] {
      const UniqueFd peer(::accept(listener.get(), nullptr, nullptr));
      bool would_block = false;
      while (received.find('\n') == std::string::npos) {
        auto bytes = read_some(peer.get(), 4096, &would_block);
        if (!bytes || bytes->empty()) break;
        received += *bytes;
      }
      (void)write_all(peer.get(), answer).has_value();
    });
    *outcome = request_cancel(attempt_, "no longer \"needed\"");
    supervisor.join();
    return received;
  }

  std::optional<TempDir> folder_;
  std::string attempt_;
};

TEST_F(ControlTest, RequestIsOneLineAndAcknowledged) {
  Status outcome;
  EXPECT_EQ(exchange("{\"ok\":true}\n", &outcome),
            "{\"cancel\":{\"reason\":\"no longer \\\"needed\\\"\"}}\n");
  EXPECT_TRUE(outcome) << outcome.error().line();
}

TEST_F(ControlTest, AnotherAnswerIsAnError) {
  Status outcome;
  exchange("{\"ok\":false}\n", &outcome);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::protocol);
}

TEST_F(ControlTest, SupervisorThatEndsMeanwhileIsNotRunning) {
  Status outcome;
  exchange("", &outcome);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::conflict);
}

TEST_F(ControlTest, NobodyThereIsNotRunning) {
  EXPECT_EQ(request_cancel(attempt_, "").error().code, Code::conflict) << "no socket";
  { const UniqueFd listener = listen_there(); }
  EXPECT_EQ(request_cancel(attempt_, "").error().code, Code::conflict) << "a socket that was left behind";
  EXPECT_EQ(request_cancel(folder_->path() + "/none", "").error().code, Code::conflict) << "no folder";
}

}  // namespace
}  // namespace cofferdam::attempt
