#include "attempt/watch.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "settle/line_splitter.h"

namespace cofferdam::attempt {
namespace {

using contract::Json;
using contract::Outcome;
using sandbox::BoxReport;
using SteadyClock = std::chrono::steady_clock;

// How long after the grace a box may take to be gone before it is called lost.
constexpr std::chrono::seconds kSettleBound{30};
// Init enforces the deadline by itself; we come second, for a host on which init does not get to run.
constexpr std::chrono::seconds kBehindInit{2};

// Denials beyond this are counted and no longer recorded one by one.
constexpr std::uint64_t kRecordedDenials = 1000;
constexpr auto kGatewayEnd = std::chrono::seconds(10);

class Watch {
 public:
  explicit Watch(WatchInput input) : in_(std::move(input)) {}

  Status run() {
    auto handler = [this](const std::string& by, const std::string& reason) { cancel(by, reason); };
    in_.cancel.handle({}, handler);
    while (!gone_ || in_.output.out.valid() || in_.output.err.valid()) {
      std::vector<pollfd> entries = poll_entries();
      const std::size_t own = entries.size();
      in_.cancel.add_to(&entries);
      if (::poll(entries.data(), entries.size(), poll_timeout()) < 0 && errno != EINTR)
        return sys_error("poll", errno);
      if (entries[0].revents != 0) TRY_VOID(box_message());
      if (entries[1].revents != 0) read_output(&in_.output.out, &in_.output.out_file, true);
      if (entries[2].revents != 0) read_output(&in_.output.err, &in_.output.err_file, false);
      if (entries[3].revents != 0) read_gateway();
      in_.cancel.handle({entries.begin() + static_cast<std::ptrdiff_t>(own), entries.end()}, handler);
      TRY_VOID(check_clock());
      if (in_.account.broken().has_value())
        end(Outcome::setup_failed, "ledger", in_.account.broken()->line());
    }
    return finish();
  }

 private:
  std::vector<pollfd> poll_entries() const {
    return {{gone_ ? -1 : in_.box.control_fd(), POLLIN, 0},
            {in_.output.out.get(), POLLIN, 0},
            {in_.output.err.get(), POLLIN, 0},
            {gateway_ended_ || in_.gateway == nullptr ? -1 : in_.gateway->events_fd(), POLLIN, 0}};
  }

  // The next moment at which the clock alone makes something happen.
  SteadyClock::time_point next_alarm() const { return ending_ ? lost_at_ : in_.deadline + kBehindInit; }

  int poll_timeout() const {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next_alarm() - SteadyClock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 3'600'000));
  }

  Status check_clock() {
    if (gone_ || SteadyClock::now() < next_alarm()) return {};
    if (!ending_) {
      end(Outcome::limit, "deadline", "the total deadline has passed");
      return {};
    }
    if (!killed_) {  // init did not end it: the kernel does, when its parent goes
      killed_ = true;
      lost_at_ = SteadyClock::now() + kSettleBound;
      in_.box.kill();
      return {};
    }
    return lost();
  }

  // Asks for the end; the first cause is kept by the settlement.
  void end(Outcome outcome, const std::string& control, const std::string& detail) {
    in_.account.settlement().end(outcome, control, printable(detail, 2000), now());
    stop_box();
  }

  void stop_box() {
    if (ending_) return;
    ending_ = true;
    lost_at_ = SteadyClock::now() + in_.grace + kSettleBound;
    in_.box.terminate();
  }

  void cancel(const std::string& by, const std::string& reason) {
    in_.account.cancel(by, reason);
    stop_box();
  }

  Status box_message() {
    TRY(BoxReport report, in_.box.receive());
    settle::Settlement& settlement = in_.account.settlement();
    switch (report.kind) {
      case BoxReport::Kind::started:
        settlement.started(now());
        in_.account.event(contract::event_type::started, Json::object());
        break;
      case BoxReport::Kind::not_started:
        end(Outcome::setup_failed, "program",
            sys_error("the program could not be started", report.error).what);
        break;
      case BoxReport::Kind::deadline:
        settlement.end(Outcome::limit, "deadline", "the total deadline has passed", now());
        stop_box();
        break;
      case BoxReport::Kind::exited:
        status_ = report.status;
        settlement.exited(report.status, now());
        break;
      case BoxReport::Kind::gone:
        take_resources(report);
        break;
      case BoxReport::Kind::lost:
        return box_ended();
    }
    return {};
  }

  Status lost() {
    in_.account.settlement().lost("the box could not be ended within the bound; its init is still there",
                                  now());
    return make_error(Code::timeout, "the box could not be ended within the bound");
  }

  void take_resources(const BoxReport& report) {
    left_over_ = report.left_over;
    contract::Resources& resources = in_.account.result().resources;
    resources.peak_memory = report.peak_bytes;
    resources.cpu_ms = report.cpu_ms;
    resources.work_bytes = report.work_bytes;
    resources.work_inodes = report.work_inodes;
  }

  // Init's end of the socket is closed. The proof that nothing is left is its parent's end, not this.
  Status box_ended() {
    in_.account.settlement().end(Outcome::setup_failed, "init", "the box ended without saying why", now());
    if (!in_.box.wait_gone(in_.grace + kSettleBound)) return lost();
    in_.account.settlement().box_gone(left_over_, now());
    gone_ = true;
    return {};
  }

  void read_output(UniqueFd* pipe, UniqueFd* file, bool is_stdout) {
    bool would_block = false;
    auto bytes = read_some(pipe->get(), 65536, &would_block);
    if (would_block) return;
    if (!bytes || bytes->empty()) {
      pipe->reset();
      return;
    }
    const std::uint64_t room = in_.output.max_bytes - std::min(in_.output.max_bytes, output_bytes_);
    output_bytes_ += bytes->size();
    if (bytes->size() > room) {
      bytes->resize(room);
      end(Outcome::limit, "output", fmt::format("more than {} bytes of output", in_.output.max_bytes));
    }
    // What the agent printed is kept for people; a full disk there must not end the attempt.
    (void)write_all(file->get(), *bytes).has_value();
    if (is_stdout) take_lines(lines_.feed(*bytes));
  }

  void take_lines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      for (const agent::AgentEvent& event : in_.decoder.line(line)) {
        auto data = contract::parse_json_lenient(event.data, 1U << 20U);
        in_.account.event(contract::event_type::agent,
                          {{"kind", event.kind}, {"data", data ? *data : Json::object()}});
      }
    }
  }

  void read_gateway() {
    bool would_block = false;
    auto bytes = read_some(in_.gateway->events_fd(), 65536, &would_block);
    if (would_block) return;
    if (!bytes || bytes->empty()) {
      gateway_ended_ = true;
      if (!gone_) end(Outcome::failed, "gateway", "the gateway ended while the agent was running");
      return;
    }
    for (const std::string& line : gateway_lines_.feed(*bytes)) gateway_event(line);
  }

  void gateway_event(const std::string& line) {
    auto event = egress::decode_gateway_event(line);
    if (!event) return end(Outcome::failed, "gateway", event.error().line());
    contract::ResultRecord& result = in_.account.result();
    if (event->denied) ++result.egress.denied;
    if (event->tunnelled) {
      count_destination(*event);
      return record_egress(*event);
    }
    if (!event->denied && event->rule != egress::kPresenceRule) ++result.egress.requests;
    result.usage.input_tokens += event->input_tokens;
    result.usage.output_tokens += event->output_tokens;
    note_vendor(*event);
    spend(*event);
    record_egress(*event);
  }

  // The bounds of a destination end its connection, not the attempt: the program sees it and may go on.
  void count_destination(const egress::GatewayEvent& event) {
    for (contract::DestinationFacts& facts : in_.account.result().egress.destinations) {
      if (facts.host != event.host || facts.port != event.port) continue;
      ++(event.denied ? facts.denied : facts.connections);
      facts.sent += event.request_bytes;
      facts.received += event.response_bytes;
    }
  }

  void record_egress(const egress::GatewayEvent& event) {
    // A box can be denied as often as it likes; the count in the result stays exact.
    if (event.denied && in_.account.result().egress.denied > kRecordedDenials) return;
    in_.account.event(
        contract::event_type::egress,
        {{"method", contract::json_text(event.method, 32)},
         {"path", contract::json_text(event.path, 300)},
         {"rule", contract::json_text(event.rule, 300)},
         {"denied", event.denied},
         {"status", event.status},
         {"request_bytes", contract::json_count(event.request_bytes)},
         {"response_bytes", contract::json_count(event.response_bytes)},
         {"took_ms", contract::json_count(event.took_ms)},
         {"input_tokens", contract::json_count(event.input_tokens)},
         {"output_tokens", contract::json_count(event.output_tokens)},
         {"cache_read_tokens", contract::json_count(event.cache_read_tokens)},
         {"cache_write_tokens", contract::json_count(event.cache_write_tokens)},
         {"cost_usd_micros", contract::json_count(event.cost_micros)},
         {"uncounted_tokens", contract::json_count(event.uncounted_tokens)},
         {"failure", event.failure.empty() ? Json(nullptr) : Json(event.failure)},
         {"retry_after",
          event.retry_after.empty() ? Json(nullptr) : contract::json_text(event.retry_after, 64)},
         {"host", event.host.empty() ? Json(nullptr) : contract::json_text(event.host, 253)},
         {"port", event.port == 0 ? Json(nullptr) : Json(event.port)}});
  }

  void spend(const egress::GatewayEvent& event) {
    counted_micros_ += event.cost_micros;
    spent_.tokens += event.input_tokens + event.output_tokens + event.uncounted_tokens;
    spent_.cost_micros += event.cost_micros + event.uncounted_micros;
    if (event.limit && !event.denied) {
      return end(Outcome::limit, "response", "an answer of the vendor's is too large");
    }
    const char* over = egress::overspent(in_.budget, spent_);
    const std::string budget = event.limit ? event.rule : over != nullptr ? over : "";
    if (!budget.empty()) {
      end(Outcome::limit, budget, fmt::format("the budget of {} at the vendor is used up", budget));
    }
  }

  // What the last request came to, unless that was a good answer: a CLI does not always say it, and one that
  // is ended while it waits or tries again says nothing at all.
  void note_vendor(const egress::GatewayEvent& event) {
    if (event.denied || event.rule == egress::kPresenceRule) return;
    vendor_trouble_.clear();
    if (event.failure.empty() && event.status < 400) return;
    // Left by the agent: a part of its way to work, unless it was ended while it waited.
    if (event.failure == egress::kClientGone && !ending_) return;
    vendor_trouble_ = "the last request to the vendor: ";
    if (event.status != 0) vendor_trouble_ += fmt::format("{} ", event.status);
    vendor_trouble_ += event.failure == egress::kClientGone ? "still open" : event.failure;
    if (!event.retry_after.empty()) vendor_trouble_ += "retry-after " + event.retry_after;
    vendor_trouble_ = std::string(trim(vendor_trouble_));
  }

  Status finish() {
    take_lines(lines_.finish());
    // Requests that ended with the box are reported after it; the gateway says the rest when it ends.
    if (in_.gateway != nullptr && !gateway_ended_) {
      in_.gateway->process().signal(SIGTERM);
      const auto end = SteadyClock::now() + kGatewayEnd;
      while (!gateway_ended_ && SteadyClock::now() < end) {
        TRY(bool spoke, wait_readable(in_.gateway->events_fd(), 500));
        if (spoke) read_gateway();
      }
      // It speaks on and on, or not at all: the account is closed without it.
      if (!gateway_ended_) in_.gateway->process().signal(SIGKILL);
    }
    conclude();
    return {};
  }

  void conclude() {
    contract::ResultRecord& result = in_.account.result();
    agent::Verdict verdict = in_.decoder.finish(status_);
    in_.account.settlement().conclude(verdict.ok, verdict.reason);
    in_.account.settlement().remark(vendor_trouble_);
    result.answer = verdict.answer;
    result.summary = printable(verdict.summary, 8000);
    result.usage.requests = result.egress.requests;
    if (in_.priced) result.usage.cost_usd = static_cast<double>(counted_micros_) / 1e6;
    result.usage.agent_cost_usd = verdict.cost_usd;
    if (result.usage.input_tokens == 0) result.usage.input_tokens = verdict.input_tokens;
    if (result.usage.output_tokens == 0) result.usage.output_tokens = verdict.output_tokens;
  }

  WatchInput in_;
  settle::LineSplitter lines_{agent::kMaxLineBytes};
  settle::LineSplitter gateway_lines_{16384};
  ExitStatus status_;
  egress::Spent spent_;
  std::uint64_t counted_micros_ = 0;  // without what was never heard
  std::string vendor_trouble_;
  std::uint64_t output_bytes_ = 0;
  bool ending_ = false;
  bool killed_ = false;
  bool gone_ = false;
  bool left_over_ = false;
  bool gateway_ended_ = false;
  SteadyClock::time_point lost_at_{};
};

}  // namespace

Status watch(WatchInput input) {
  TRY_VOID(set_nonblocking(input.output.out.get(), true));
  TRY_VOID(set_nonblocking(input.output.err.get(), true));
  if (input.gateway != nullptr) TRY_VOID(set_nonblocking(input.gateway->events_fd(), true));
  return Watch(std::move(input)).run();
}

}  // namespace cofferdam::attempt
