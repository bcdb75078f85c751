#include "attempt/source_look.h"

#include <string>
#include <system_error>

#include "base/io.h"
#include "contract/event.h"
#include "contract/json.h"

namespace cofferdam::attempt {
namespace {

constexpr std::chrono::milliseconds kNoWait{0};
// Of an attempt that ends: what has taken longer is not worth the wait.
constexpr std::chrono::milliseconds kPatience{10'000};

}  // namespace

Result<SourceLook> SourceLook::start(const clone::Source& source, const clone::Cloned& cloned) {
  SourceLook look;
  TRY(Pipe stop, make_pipe());
  TRY(Pipe done, make_pipe());
  look.stop_ = std::move(stop.write);
  look.done_ = std::move(done.read);
  look.state_.reset(
      new State{source, cloned.identity, cloned.packs, std::move(stop.read), std::move(done.write)});
  look.state_->source.stop_fd = look.state_->stop.get();
  try {
    // Signals are for the main thread, which has them blocked: a new thread inherits that.
    look.thread_ = std::thread([state = look.state_.get()] {
      state->facts = clone::source_facts(state->source, state->identity, state->packs);
      state->done.reset();  // the reader sees the end of the pipe
    });
  } catch (const std::system_error& problem) {
    return make_error(Code::exhausted, std::string("cannot start a thread: ") + problem.what());
  }
  return look;
}

SourceLook::~SourceLook() {
  stop_.reset();
  if (thread_.joinable()) thread_.join();
}

std::optional<contract::SourceFacts> SourceLook::take(std::chrono::milliseconds limit) {
  const auto ended = wait_readable(done_.get(), static_cast<int>(limit.count()));
  if (!ended || !*ended) stop_.reset();
  thread_.join();
  if (!state_->facts) return std::nullopt;
  return *state_->facts;
}

Status SourceReport::start(const clone::Source& source, const clone::Cloned& cloned) {
  TRY(SourceLook look, SourceLook::start(source, cloned));
  look_.emplace(std::move(look));
  return {};
}

void SourceReport::serve() {
  if (!look_.has_value()) return;
  const auto ended = wait_readable(look_->fd(), 0);
  if (ended && *ended) report(kNoWait);
}

void SourceReport::finish() {
  if (look_.has_value()) report(kPatience);
}

void SourceReport::report(std::chrono::milliseconds limit) {
  const auto found = look_->take(limit);
  look_.reset();
  if (!found.has_value()) return;
  account_.result().source = *found;
  account_.event(contract::event_type::source,
                 {{"kind", found->kind},
                  {"shallow", found->shallow},
                  {"partial", found->partial},
                  {"dirty_files", contract::json_count(found->dirty_files)},
                  {"untracked_files", contract::json_count(found->untracked_files)},
                  {"submodules", contract::json_count(found->submodules)},
                  {"lfs_files", contract::json_count(found->lfs_files)}});
}

}  // namespace cofferdam::attempt
