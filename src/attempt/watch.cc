#include "attempt/watch.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "settle/alarms.h"
#include "settle/line_splitter.h"

namespace cofferdam::attempt {
namespace {

using contract::Json;
using contract::Outcome;
using sandbox::BoxReport;
using settle::Alarm;
using SteadyClock = std::chrono::steady_clock;

// How long after the grace a box may take to be gone before it is called lost.
constexpr std::chrono::seconds kSettleBound{30};
// Init enforces the deadline by itself; we come second, for a host on which init does not get to run.
constexpr std::chrono::seconds kBehindInit{2};
// An agent that has given its final answer has nothing left to do but to exit.
constexpr std::chrono::seconds kAfterAnswer{60};

// Denials beyond this are counted and no longer recorded one by one.
constexpr std::uint64_t kRecordedDenials = 1000;
constexpr auto kGatewayEnd = std::chrono::seconds(10);
// How often the box's control group is looked at.
constexpr std::chrono::milliseconds kBetweenLooks{200};
// Reads of a stream once the box is gone: more than a pipe can hold.
constexpr int kLastReads = 64;

std::string size_text(std::uint64_t bytes) {
  if (bytes < (1ULL << 30U)) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

const char* stream_name(bool is_stdout) {
  return is_stdout ? "stdout" : "stderr";
}

settle::Bounds bounds_of(const WatchInput& in) {
  const contract::Deadlines& deadlines = in.invocation->deadlines;
  settle::Bounds bounds;
  bounds.deadline = in.deadline + kBehindInit;
  bounds.first_output = deadlines.first_output;
  bounds.idle = deadlines.idle;
  bounds.after_answer = kAfterAnswer;
  bounds.kill = deadlines.grace + kSettleBound;
  bounds.lost = kSettleBound;
  return bounds;
}

class Watch {
 public:
  explicit Watch(WatchInput input)
      : in_(std::move(input)),
        limits_(in_.invocation->limits),
        has_protocol_(in_.invocation->agent.name != "command"),
        alarms_(bounds_of(in_)),
        lines_(has_protocol_ ? limits_.line_bytes : agent::kMaxCommandLine) {}

  Status run() {
    auto handler = [this](const std::string& by, const std::string& reason) { cancel(by, reason); };
    in_.cancel.on_checkpoint([this](const std::string& by, const std::string& reason, UniqueFd peer) {
      in_.checkpoints.ask(by, reason, std::move(peer));
    });
    in_.cancel.handle({}, handler);
    while (!gone_) {
      std::vector<pollfd> entries = poll_entries();
      const std::size_t own = entries.size();
      in_.cancel.add_to(&entries);
      if (::poll(entries.data(), entries.size(), poll_timeout()) < 0 && errno != EINTR)
        return sys_error("poll", errno);
      if (entries[0].revents != 0) TRY_VOID(box_message());
      if (entries[1].revents != 0) read_output(true);
      if (entries[2].revents != 0) read_output(false);
      if (entries[3].revents != 0) read_gateway();
      in_.cancel.handle({entries.begin() + static_cast<std::ptrdiff_t>(own), entries.end()}, handler);
      look_at_group();
      TRY_VOID(check_clock());
      in_.source.serve();
      if (started_ && !gone_) in_.checkpoints.serve();
      if (in_.account.broken().has_value())
        end(Outcome::setup_failed, "ledger", in_.account.broken()->line());
    }
    in_.cancel.on_checkpoint(nullptr);
    return finish();
  }

 private:
  std::vector<pollfd> poll_entries() const {
    // The program may well print before init has said that it runs: the account begins with the latter.
    return {{in_.box.control_fd(), POLLIN, 0},
            {started_ ? in_.out.fd() : -1, POLLIN, 0},
            {started_ ? in_.err.fd() : -1, POLLIN, 0},
            {gateway_ended_ || in_.gateway == nullptr ? -1 : in_.gateway->events_fd(), POLLIN, 0},
            {in_.checkpoints.fd(), POLLIN, 0},
            {in_.source.fd(), POLLIN, 0}};
  }

  int poll_timeout() const {
    const auto hour = std::chrono::hours(1);
    auto next = started_ ? std::min(alarms_.next(), in_.checkpoints.next()) : alarms_.next();
    if (started_ && in_.box.group_bounds().has_value()) next = std::min(next, last_look_ + kBetweenLooks);
    const auto left = std::min<SteadyClock::duration>(next - SteadyClock::now(), hour);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::max<std::int64_t>(ms + 1, 0));
  }

  // Last in every round: what had been printed or reported by then comes first.
  Status check_clock() {
    if (gone_) return {};
    const contract::Deadlines& deadlines = in_.invocation->deadlines;
    switch (alarms_.take(SteadyClock::now())) {
      case Alarm::none:
        break;
      case Alarm::deadline:
        end(Outcome::limit, "deadline", "the total deadline has passed");
        break;
      case Alarm::first_output:
        end(Outcome::limit, "first-output",
            fmt::format("nothing was printed within {} ms of the start", deadlines.first_output->count()));
        break;
      case Alarm::idle:
        end(Outcome::limit, "idle",
            fmt::format("neither output nor an answer of the vendor's for {} ms", deadlines.idle->count()));
        break;
      case Alarm::unfinished:
        end(Outcome::limit, "idle", "the agent has answered but did not exit");
        break;
      case Alarm::kill:  // init did not end it: the kernel does, when PID 1 goes
        in_.box.kill();
        break;
      case Alarm::lost:
        return lost();
    }
    return {};
  }

  // Asks for the end; the first cause is kept by the settlement.
  void end(Outcome outcome, const std::string& control, const std::string& detail) {
    in_.account.settlement().end(outcome, control, printable(detail, 2000), now());
    stop_box();
  }

  void stop_box() {
    if (ending_) return;
    ending_ = true;
    alarms_.ending(SteadyClock::now());
    in_.box.terminate();
  }

  void cancel(const std::string& by, const std::string& reason) {
    in_.account.cancel(by, reason);
    stop_box();
  }

  Status box_message() {
    TRY(BoxReport report, in_.box.receive());
    switch (report.kind) {
      case BoxReport::Kind::started:
        started_ = true;
        in_.account.settlement().started(now());
        alarms_.started(SteadyClock::now());
        in_.checkpoints.started();
        in_.account.event(contract::event_type::started, Json::object());
        break;
      case BoxReport::Kind::not_started:
        end(Outcome::setup_failed, "program",
            sys_error("the program could not be started", report.error).what);
        break;
      case BoxReport::Kind::deadline:
        end(Outcome::limit, "deadline", "the total deadline has passed");
        break;
      case BoxReport::Kind::over:
        over(report);
        break;
      case BoxReport::Kind::full:
        storage_full(report.control);
        break;
      case BoxReport::Kind::exited:
        process_ended(report.status);
        break;
      case BoxReport::Kind::gone:
        take_resources(report);
        break;
      case BoxReport::Kind::lost:
        return box_ended();
    }
    return {};
  }

  // Init has begun to end the box by itself.
  void over(const BoxReport& report) {
    const bool memory = report.control == "memory";
    end(Outcome::limit, report.control,
        memory ? fmt::format("the programs in the box took {} of resident memory, the limit is {}",
                             size_text(report.peak), size_text(limits_.memory_bytes))
               : fmt::format("{} processes and threads were in the box, the limit is {}", report.peak,
                             limits_.pids));
  }

  // The kernel has killed a process of the box, or refused one, because of the group's bounds.
  void look_at_group() {
    if (gone_ || SteadyClock::now() < last_look_ + kBetweenLooks) return;
    last_look_ = SteadyClock::now();
    take_group_facts();
  }

  void take_group_facts() {
    const auto facts = in_.box.group_facts();
    if (!facts.has_value()) return;
    contract::Resources& resources = in_.account.result().resources;
    if (facts->peak_bytes != 0) resources.peak_memory = std::max(resources.peak_memory, facts->peak_bytes);
    if (facts->peak_pids > sandbox::kPidsOfInit) {
      resources.peak_pids = std::max(resources.peak_pids, facts->peak_pids - sandbox::kPidsOfInit);
    }
    if (facts->oom_kills > 0) {
      end(Outcome::limit, "memory",
          fmt::format(
              "the kernel ended a process of the box: its control group may take {} of memory, of which "
              "limits.memory_bytes is {} and the rest for files in memory",
              size_text(in_.box.group_bounds()->memory_bytes), size_text(limits_.memory_bytes)));
    }
    if (facts->pids_refused > 0) {
      end(Outcome::limit, "pids",
          fmt::format("the kernel refused a process or thread: the limit is {}", limits_.pids));
    }
  }

  void storage_full(const std::string& control) {
    std::string detail = "HOME, /tmp or /dev/shm was full";
    if (control == "work-bytes")
      detail = fmt::format("the work tree was full ({})", size_text(limits_.work_bytes));
    if (control == "work-inodes")
      detail = fmt::format("the work tree had no inode left (of {})", limits_.work_inodes);
    in_.account.settlement().storage_full(control, detail);
  }

  void process_ended(const ExitStatus& status) {
    status_ = status;
    take_group_facts();  // first: that may be why it has ended
    in_.account.settlement().exited(status, now());
    // Init ends the rest by itself; that too has its bound.
    alarms_.ending(SteadyClock::now());
    in_.account.event(contract::event_type::process_ended,
                      {{"exit_code", status.code.has_value() ? Json(*status.code) : Json(nullptr)},
                       {"signal", status.signal.has_value() ? Json(*status.signal) : Json(nullptr)}});
  }

  Status lost() {
    in_.account.settlement().lost("box",
                                  "the box could not be ended within the bound; its init is still there",
                                  in_.box.describe(), now());
    return make_error(Code::timeout, "the box could not be ended within the bound");
  }

  void take_resources(const BoxReport& report) {
    left_over_ = report.left_over;
    contract::Resources& resources = in_.account.result().resources;
    // A group has counted what lies between two looks of init's, and what no process has mapped.
    resources.peak_memory = std::max({resources.peak_memory, report.peak_bytes, report.sampled_bytes});
    resources.peak_pids = std::max(resources.peak_pids, report.peak_pids);
    resources.cpu_ms = report.cpu_ms;
    resources.work_bytes = report.work_bytes;
    resources.work_inodes = report.work_inodes;
  }

  // Init's end of the socket is closed. The proof that nothing is left is its parent's end, not this.
  Status box_ended() {
    settle::Settlement& settlement = in_.account.settlement();
    take_group_facts();
    settlement.end(Outcome::setup_failed, "init", "the box ended without saying why", now());
    if (!in_.box.wait_gone(in_.invocation->deadlines.grace + kSettleBound)) return lost();
    settlement.box_gone(left_over_, now());
    gone_ = true;
    in_.checkpoints.close();
    in_.account.event(contract::event_type::box_gone,
                      {{"killed", left_over_}, {"took_ms", contract::json_count(settlement.took_ms())}});
    return {};
  }

  // True when there may be more at once.
  bool read_output(bool is_stdout) {
    OutputStream& stream = is_stdout ? in_.out : in_.err;
    const OutputStream::Piece piece = stream.read();
    if (!piece.bytes.empty()) alarms_.printed(SteadyClock::now());
    if (piece.over) {
      const std::uint64_t limit = is_stdout ? limits_.stdout_bytes : limits_.stderr_bytes;
      end(Outcome::limit, stream_name(is_stdout),
          fmt::format("more than {} bytes on {}", limit, is_stdout ? "standard output" : "standard error"));
    }
    if (is_stdout && in_.decoder.listens()) take_lines(lines_.feed(piece.bytes));
    return stream.open() && !piece.would_block;
  }

  void take_lines(const std::vector<std::string>& lines) {
    if (has_protocol_ && lines_.dropped_lines() > 0) {
      end(Outcome::limit, "line",
          fmt::format("a line of the agent's is longer than {} bytes", limits_.line_bytes));
    }
    std::vector<agent::AgentEvent> events;
    for (const std::string& line : lines) {
      for (agent::AgentEvent& event : in_.decoder.line(line)) {
        ++in_.account.result().output.events;
        if (!has_protocol_ || in_.account.result().output.events <= limits_.events)
          events.push_back(std::move(event));
      }
    }
    record(events);
    if (has_protocol_ && in_.account.result().output.events > limits_.events)
      end(Outcome::limit, "events", fmt::format("more than {} events of the agent's", limits_.events));
  }

  // What one read has come to; the only place that writes the agent's events.
  void record(const std::vector<agent::AgentEvent>& events) {
    std::vector<Json> remarks;
    remarks.reserve(events.size());
    bool answered = false;
    for (const agent::AgentEvent& event : events) {
      auto data = contract::parse_json_lenient(event.data, 1U << 20U);
      remarks.push_back({{"kind", event.kind}, {"data", data ? *data : Json::object()}});
      answered = answered || event.kind == "answer";
      if (in_.steps && event.kind == "step" && data && data->contains("text")) {
        in_.checkpoints.ask("agent", (*data)["text"].get<std::string>(), UniqueFd());
      }
    }
    in_.account.remarks(contract::event_type::agent, remarks);
    if (!answered || !in_.account.settlement().answered(now())) return;
    alarms_.answered(SteadyClock::now());
    in_.account.event(contract::event_type::answered, Json::object());
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
    if (event->rule == egress::kDeadlineRule) {
      end(Outcome::limit, "deadline", "the total deadline has passed");
      return record_egress(*event);
    }
    contract::ResultRecord& result = in_.account.result();
    if (event->denied) ++result.egress.denied;
    if (event->tunnelled) {
      count_destination(*event);
      return record_egress(*event);
    }
    if (!event->denied && event->rule != egress::kPresenceRule) ++result.egress.requests;
    result.usage.input_tokens += event->input_tokens;
    result.usage.output_tokens += event->output_tokens;
    if (!event->denied && event->rule != egress::kPresenceRule) alarms_.active(SteadyClock::now());
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
    const char* over = egress::overspent({limits_.tokens, limits_.cost_usd_micros}, spent_);
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

  // No process of the box is left to write: what its streams still hold is read, and then they are closed,
  // whoever else may have them open.
  void finish_output() {
    for (bool is_stdout : {true, false}) {
      for (int reads = 0; reads < kLastReads && read_output(is_stdout); ++reads) {
      }
      (is_stdout ? in_.out : in_.err).close();
    }
    take_lines(lines_.finish());
    contract::OutputFacts& output = in_.account.result().output;
    output.stdout_bytes = in_.out.printed();
    output.stderr_bytes = in_.err.printed();
    output.dropped_bytes = in_.out.dropped() + in_.err.dropped();
    output.dropped_lines = lines_.dropped_lines();
  }

  Status finish() {
    finish_output();
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
    // How a program ended that we have ended says nothing of the answer that it had given before.
    const settle::Settlement& settlement = in_.account.settlement();
    const bool answer_counts = settlement.has_answered() && !settlement.ended_by_exit();
    const ExitStatus end = answer_counts ? ExitStatus{0, std::nullopt} : status_;
    agent::Verdict verdict = in_.decoder.finish(end);
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
  const contract::Limits& limits_;
  const bool has_protocol_;  // its lines are an agent's events, not just text
  settle::Alarms alarms_;
  settle::LineSplitter lines_;
  settle::LineSplitter gateway_lines_{16384};
  ExitStatus status_;
  egress::Spent spent_;
  std::uint64_t counted_micros_ = 0;  // without what was never heard
  std::string vendor_trouble_;
  bool started_ = false;
  SteadyClock::time_point last_look_;
  bool ending_ = false;
  bool gone_ = false;
  bool left_over_ = false;
  bool gateway_ended_ = false;
};

}  // namespace

Status watch(WatchInput input) {
  if (input.gateway != nullptr) TRY_VOID(set_nonblocking(input.gateway->events_fd(), true));
  return Watch(std::move(input)).run();
}

}  // namespace cofferdam::attempt
