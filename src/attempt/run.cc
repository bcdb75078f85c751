#include "attempt/run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "agent/decoder.h"
#include "agent/launch.h"
#include "attempt/account.h"
#include "attempt/admission.h"
#include "attempt/bound_cache.h"
#include "attempt/box_host.h"
#include "attempt/bring_home.h"
#include "attempt/cancel.h"
#include "attempt/destinations.h"
#include "attempt/follow.h"
#include "attempt/lock.h"
#include "attempt/make_workspace.h"
#include "attempt/output.h"
#include "attempt/recover.h"
#include "attempt/source_look.h"
#include "attempt/watch.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "clone/clone.h"
#include "egress/broker.h"
#include "egress/gateway.h"
#include "egress/prices.h"
#include "handoff/commit_object.h"
#include "image/store.h"
#include "sandbox/controls.h"
#include "sandbox/native/box.h"
#include "workspace/storage.h"

namespace cofferdam::attempt {
namespace {

using contract::Access;
using contract::Invocation;
using SteadyClock = std::chrono::steady_clock;

// Inside the box's own network namespace every port is free; this one is rarely wanted by test suites.
constexpr std::uint16_t kGatewayPort = 20711;
// The most that an unprivileged user may ask for by default: pipe(7).
constexpr int kOutputRoom = 1 << 20;
// How long another process may take from its lock on an attempt id to the admission.
constexpr std::chrono::seconds kAdmissionBound{30};
// How often an attempt in the queue looks whether those before it still have a supervisor.
constexpr std::chrono::seconds kBetweenSweeps{5};
constexpr std::uint16_t kProxyPort = 20712;    // only with destinations
constexpr std::chrono::seconds kEndBound{30};  // of a box that is killed before its program was started

// What has to be right before anything is recorded or started.
struct Readied {
  clone::Source source;
  agent::Launch launch;
  std::optional<egress::Broker> broker;  // with egress
  ReadiedDestinations destinations;
  std::optional<contract::ModelPrice> price;
  sandbox::BoxHost boxes;
  std::optional<image::ImageUse> image;  // held, so that nobody removes it
};

// The credential, if it comes by a variable, leaves this process here.
Result<egress::Broker> start_broker(const Host& host, contract::Vendor vendor) {
  const auto shape =
      vendor == contract::Vendor::openai ? egress::LoginShape::codex : egress::LoginShape::claude;
  TRY(egress::BrokerSetup setup,
      egress::plan_broker(host.config.vendor(vendor), shape, egress::take_variable));
  return egress::Broker::start(host.program, std::move(setup));
}

// An upstream of the user's own is meant for every credential; the vendor's own differs for a ChatGPT login.
std::string upstream_of(const contract::VendorConfig& vendor, egress::CredentialKind kind) {
  const bool elsewhere =
      kind == egress::CredentialKind::chatgpt && vendor.upstream == contract::Config().openai.upstream;
  return elsewhere ? contract::Config::kChatGptUpstream : vendor.upstream;
}

// What the model's tokens cost. A limit that could not be watched is refused.
Result<std::optional<contract::ModelPrice>> find_price(const Host& host, const Invocation& invocation) {
  std::optional<contract::ModelPrice> price = egress::listed_price(invocation->model);
  auto own = host.config.prices.find(invocation->model);
  if (own != host.config.prices.end()) price = own->second;
  if (price.has_value() || invocation->limits.cost_usd_micros == 0) return price;
  return make_error(
      Code::denied,
      fmt::format("limits.cost_usd_micros cannot be enforced: the price of the model \"{}\" is not known",
                  invocation->model),
      fmt::format("set [prices.\"{}\"] in the configuration, or limit tokens instead", invocation->model));
}

Status check_version(const contract::AgentSpec& agent, const std::string& installed) {
  if (!agent.version.has_value() || *agent.version == installed) return {};
  return make_error(Code::denied,
                    fmt::format("the invocation asks for {} {}, but {} is installed", agent.name,
                                *agent.version, installed),
                    "install that version, or change agent.version");
}

// An image that was built here has agents of its own; one from elsewhere gets the host's.
std::string agents_dir(const Host& host, const std::optional<image::ImageUse>& image) {
  if (!image.has_value()) return host.agents_dir;
  std::string own = image->tree + image::kAgentsInImage;
  return is_directory(own) ? own : host.agents_dir;
}

Result<Readied> ready(const Host& host, const Invocation& invocation) {
  if (invocation->backend != contract::Backend::native) {
    return make_error(Code::denied, "the docker backend is not in this version", "use --backend native");
  }
  if (!invocation->commands.empty()) {
    return make_error(Code::denied, "approved commands are not in this version",
                      "leave them out; the agent may use its own shell inside the box");
  }
  if (invocation->answer_schema.has_value()) {
    return make_error(Code::denied, "answer schemas are not in this version", "leave answer_schema out");
  }
  if (!host.config.sign_key.empty()) TRY_VOID(handoff::check_sign_key(host.config.sign_key));
  Readied readied;
  TRY(readied.source, clone::open_source(invocation->clone.repository));
  if (invocation->image.has_value()) {
    TRY(image::ImageUse image, image::use_image(host.state_dir, *invocation->image));
    readied.image.emplace(std::move(image));
  }
  agent::LaunchInput launch{invocation, agents_dir(host, readied.image)};
  launch.steps = host.config.steps;
  if (invocation->egress != contract::Vendor::none) {
    TRY(readied.price, find_price(host, invocation));
    TRY(egress::Broker broker, start_broker(host, invocation->egress));
    failpoint_part("broker", broker.process().pid());
    readied.broker.emplace(std::move(broker));
    launch.gateway_port = kGatewayPort;
    launch.oauth = readied.broker->kind() == egress::CredentialKind::anthropic_oauth;
  }
  TRY(readied.destinations, ready_destinations(host, invocation));
  if (!invocation->destinations.empty()) launch.proxy_port = kProxyPort;
  TRY(readied.launch, agent::plan_launch(launch));
  TRY_VOID(check_version(invocation->agent, readied.launch.version));
  readied.boxes = box_host(host, invocation->attempt_id);
  // What an earlier supervisor left behind does not hinder this attempt.
  (void)sweep_groups(host).has_value();
  return readied;
}

contract::Json cloned_facts(const clone::Cloned& cloned) {
  return {{"head", cloned.identity.head}, {"tree", cloned.identity.tree},
          {"base", cloned.identity.base}, {"history", contract::history_name(cloned.identity.history)},
          {"id", cloned.identity.id},     {"bytes", contract::json_count(cloned.packs.bytes)}};
}

ledger::Capacity capacity_of(const Host& host) {
  return {host.config.capacity_attempts, host.config.capacity_memory_bytes, sandbox::kOwnBoxBytes};
}

// One attempt under way. Its members are made in the order of the path and go in the opposite one.
class Attempt {
 public:
  Attempt(const Host& host, const Invocation& invocation, const Controls& controls, Readied readied,
          Account& account)
      : host_(host),
        invocation_(invocation),
        controls_(controls),
        ready_(std::move(readied)),
        account_(account),
        dir_(folder_of(host.state_dir, invocation->attempt_id)),
        deadline_(SteadyClock::now() + invocation->deadlines.total),
        look_(account) {}

  // The path of ARCHITECTURE.md. Each step leaves its event; the first that fails names the cause.
  void follow() {
    account_.result().agent.version = ready_.launch.version;
    if (invocation_->egress != contract::Vendor::none) {
      const contract::VendorConfig& vendor = host_.config.vendor(invocation_->egress);
      account_.result().vendor_upstream = upstream_of(vendor, ready_.broker->kind());
      account_.result().vendor_tools = vendor.vendor_tools;
    }
    for (const contract::Destination& one : invocation_->destinations) {
      account_.result().egress.destinations.push_back({one.host, one.port});
    }
    if (step("admission", &Attempt::open_folder) && step("admission", &Attempt::wait_in_queue) &&
        step("clone", &Attempt::clone) && step("workspace", &Attempt::make_workspace) &&
        step("box", &Attempt::start_box) && step("egress", &Attempt::start_gateway) &&
        step("settlement", &Attempt::watch_agent)) {
      bring_home_step();
    }
    end_unused_box();
    look_.finish();
    account_.settle(true);
    close_storage();
    failpoint("storage-released");
  }

 private:
  bool step(const char* stage, Status (Attempt::*act)()) {
    Status done = (this->*act)();
    if (done && account_.broken().has_value()) done = *account_.broken();
    if (done) return true;
    // Whatever step it was in that the time ran out: the deadline is the cause.
    if (SteadyClock::now() >= deadline_) {
      account_.settlement().end(contract::Outcome::limit, "deadline",
                                fmt::format("the total deadline has passed ({})", stage), now());
    }
    account_.fail(stage, done.error());
    return false;
  }

  std::chrono::milliseconds time_left() const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    return std::max(left, std::chrono::milliseconds(1));
  }

  Status open_folder() {
    TRY(CancelSources cancel, CancelSources::create(dir_, controls_));
    cancel_.emplace(std::move(cancel));
    return {};
  }

  // The attempt's own time begins when it is let in.
  Status wait_in_queue() {
    if (!account_.waiting()) return {};
    const auto total = invocation_->deadlines.total;
    TRY_VOID(wait_for_turn(
        {account_, *cancel_, capacity_of(host_), total, [this, last = SteadyClock::time_point{}]() mutable {
           if (SteadyClock::now() - last < kBetweenSweeps) return;
           last = SteadyClock::now();
           (void)recover(host_, false).has_value();
         }}));
    deadline_ = SteadyClock::now() + total;
    return {};
  }

  Status clone() {
    TRY(clone::Cloned cloned, clone::clone_head(ready_.source, invocation_->clone, host_.state_dir + "/vault",
                                                [this](int pidfd, std::chrono::milliseconds limit) {
                                                  return cancel_->wait_for(&account_, pidfd,
                                                                           std::min(limit, time_left()));
                                                }));
    account_.result().clone = cloned.identity;
    account_.event(contract::event_type::cloned, cloned_facts(cloned));
    cloned_ = std::move(cloned);
    return look_.start(ready_.source, *cloned_);
  }

  Status make_workspace() {
    const sandbox::Interrupt interrupt = cancel_->interrupt(&account_, true);
    TRY(Workspace made,
        attempt::make_workspace({host_, invocation_, *cloned_, ready_.boxes, dir_,
                                 ready_.image.has_value() ? &*ready_.image : nullptr, interrupt, deadline_}));
    storage_.emplace(std::move(made.storage));
    const contract::StorageFacts& facts = account_.result().storage.emplace(std::move(made.facts));
    account_.event(contract::event_type::workspace_ready, {{"bytes", invocation_->limits.work_bytes},
                                                           {"inodes", invocation_->limits.work_inodes},
                                                           {"kind", facts.kind},
                                                           {"tree", facts.tree},
                                                           {"survives", "the supervisor"},
                                                           {"kept_ms", facts.kept_ms}});
    return {};
  }

  contract::Profile agent_profile(int in, int out, int err) const {
    contract::Profile profile;
    profile.kind = invocation_->agent.name == "command" ? "command" : "agent";
    profile.argv = ready_.launch.argv;
    profile.env = ready_.launch.env;
    profile.work = contract::is_read_only(invocation_->phase) ? Access::read_only : Access::read_write;
    profile.metadata = Access::read_only;
    profile.host_programs = false;
    if (ready_.image.has_value()) {
      profile.image = {ready_.image->id, ready_.image->tree, ready_.image->facts.landmarks};
    }
    profile.agent_dir = ready_.launch.agent_dir;
    profile.shell = invocation_->shell;
    profile.home_files = ready_.launch.home_files;
    profile.scratch_bytes = invocation_->limits.scratch_bytes;
    profile.scratch_inodes = invocation_->limits.scratch_inodes;
    profile.work_bytes = invocation_->limits.work_bytes;
    profile.work_inodes = invocation_->limits.work_inodes;
    profile.work_in_memory = account_.result().storage->kind == "tmpfs";
    profile.memory_bytes = invocation_->limits.memory_bytes;
    profile.pids = invocation_->limits.pids;
    if (invocation_->egress != contract::Vendor::none) profile.listeners.push_back(kGatewayPort);
    if (!invocation_->destinations.empty()) profile.listeners.push_back(kProxyPort);
    profile.deadline = time_left();
    profile.grace = invocation_->deadlines.grace;
    profile.fds = {{in, 0}, {out, 1}, {err, 2}};
    return profile;
  }

  Status start_box() {
    // The prompt comes as a file at its end: no agent can wait for more of it.
    TRY(UniqueFd in, make_sealed_memfd("prompt", ready_.launch.stdin_text));
    TRY(Pipe out, make_pipe());
    TRY(Pipe err, make_pipe());
    // Claude Code does not wait for its reader when it exits: what the pipe has no room for is lost, and with
    // a long answer that is the result. Whether the kernel grants the room is no condition of the attempt.
    (void)::fcntl(out.write.get(), F_SETPIPE_SZ, kOutputRoom);
    TRY(sandbox::Box box, sandbox::Box::start(ready_.boxes, storage_->ref(),
                                              agent_profile(in.get(), out.write.get(), err.write.get())));
    box_.emplace(std::move(box));
    failpoint_part("box", box_->init_pid());
    account_.result().controls = box_->controls();
    account_.result().image = image_facts();
    const contract::Limits& limits = invocation_->limits;
    TRY(OutputStream printed, OutputStream::open(std::move(out.read), dir_ + "/stdout", limits.stdout_bytes));
    TRY(OutputStream errors, OutputStream::open(std::move(err.read), dir_ + "/stderr", limits.stderr_bytes));
    out_.emplace(std::move(printed));
    err_.emplace(std::move(errors));
    contract::Json missing = contract::Json::array();
    for (const contract::ControlFact& fact : box_->controls()) {
      if (!fact.enforced) missing.push_back(fact.name);
    }
    account_.event(contract::event_type::box_ready,
                   {{"controls", box_->controls().size()}, {"not_enforced", std::move(missing)}});
    const contract::ControlFact* unproven = sandbox::first_missing(box_->controls());
    if (unproven == nullptr) return {};
    Error error = sandbox::not_in_force(*unproven);
    account_.fail(unproven->name.c_str(), error);
    return error;
  }

  contract::ImageFacts image_facts() const {
    contract::ImageFacts facts;
    if (!ready_.image.has_value()) return facts;
    facts.kind = "image";
    facts.digest = ready_.image->id;
    for (const contract::ControlFact& fact : box_->controls()) {
      if (fact.name == "pinned-root") facts.pinned = fact.enforced;
    }
    return facts;
  }

  Status start_gateway() {
    const bool vendor = invocation_->egress != contract::Vendor::none;
    if (!vendor && invocation_->destinations.empty()) return {};
    egress::GatewayPolicy policy = vendor ? vendor_policy() : egress::GatewayPolicy{};
    policy.run_as = ready_.boxes.run_as;
    policy.deadline_ms = static_cast<std::uint64_t>((time_left() + invocation_->deadlines.grace).count());
    policy.transport.destinations = ready_.destinations.policy;
    // The box hands its listeners out in the order of the profile.
    egress::GatewayEnds ends;
    if (vendor) {
      ends.broker = ready_.broker->take_socket();
      ends.listener = std::move(box_->listeners().front());
    }
    if (!invocation_->destinations.empty()) ends.tunnels = std::move(box_->listeners().back());
    for (egress::Broker& broker : ready_.destinations.brokers) {
      ends.destination_brokers.push_back(broker.take_socket());
    }
    if (host_.config.capture_bodies) {
      TRY(ends.capture, open_file(dir_ + "/bodies.ndjson", O_WRONLY | O_CREAT | O_EXCL | O_APPEND));
    }
    TRY(egress::Gateway gateway, egress::Gateway::start(host_.program, policy, std::move(ends)));
    gateway_.emplace(std::move(gateway));
    failpoint_part("gateway", gateway_->process().pid());
    const contract::Json kind = egress::credential_kind_name(policy.credential_kind);
    account_.event(contract::event_type::gateway_ready,
                   {{"vendor", contract::vendor_name(policy.vendor)},
                    {"credential", vendor ? kind : contract::Json(nullptr)},
                    {"destinations", policy.transport.destinations.size()},
                    {"landlock_abi", gateway_->confinement().landlock_abi},
                    {"ports_limited", gateway_->confinement().ports_limited},
                    {"bodies_captured", host_.config.capture_bodies}});
    return {};
  }

  egress::GatewayPolicy vendor_policy() const {
    egress::GatewayPolicy policy;
    policy.vendor = invocation_->egress;
    policy.credential_kind = ready_.broker->kind();
    const contract::VendorConfig& vendor = host_.config.vendor(invocation_->egress);
    policy.upstream = upstream_of(vendor, policy.credential_kind);
    policy.ca_bundle = vendor.ca_bundle;
    policy.models = {invocation_->model};
    policy.vendor_tools = vendor.vendor_tools;
    policy.max_requests = invocation_->limits.requests;
    policy.max_tokens = invocation_->limits.max_tokens;
    policy.total_tokens = invocation_->limits.tokens;
    policy.max_cost_micros = invocation_->limits.cost_usd_micros;
    policy.max_parallel = invocation_->limits.parallel_requests;
    policy.price = ready_.price;
    policy.transport.extra_ca_bundle = vendor.extra_ca_bundle;
    policy.transport.proxy = vendor.proxy;
    policy.transport.head_ms = static_cast<std::uint64_t>(vendor.head_timeout.count());
    policy.transport.idle_ms = static_cast<std::uint64_t>(vendor.idle_timeout.count());
    policy.transport.answer_bytes = vendor.answer_bytes;
    return policy;
  }

  Status watch_agent() {
    TRY_VOID(box_->go());
    failpoint("go");
    std::unique_ptr<agent::Decoder> decoder = agent::make_decoder(invocation_);
    const contract::StorageFacts& storage = *account_.result().storage;
    // What lies in memory goes with the machine; a disk keeps it.
    const auto every = storage.kind == "tmpfs" && !contract::is_read_only(invocation_->phase)
                           ? host_.config.checkpoint_every
                           : std::chrono::milliseconds(0);
    Checkpoints checkpoints(
        account_,
        {host_, invocation_, *cloned_, ready_.boxes, storage_->ref(), dir_, storage.has_upper_layer()},
        every);
    Status watched = watch({account_, *cancel_, *box_, gateway_.has_value() ? &*gateway_ : nullptr, *decoder,
                            *std::move(out_), *std::move(err_), invocation_, deadline_, checkpoints, look_,
                            host_.config.steps, ready_.price.has_value()});
    look_.finish();
    if (watched) account_.settle(true);
    gateway_.reset();
    return watched;
  }

  void bring_home_step() {
    // The program has ended: a request to cancel is recorded, and what it left is brought home all the same.
    const sandbox::Interrupt interrupt = cancel_->interrupt(&account_, false);
    Status home = bring_home({account_, host_, invocation_, &ready_.source, *cloned_, ready_.boxes,
                              storage_->ref(), dir_, interrupt});
    if (home) return;
    account_.result().publication = {"failed", printable(home.error().line(), 2000)};
    account_.settlement().distrust("handoff", printable(home.error().line(), 2000), now());
  }

  // A box whose program was never started, or whose watch broke off.
  void end_unused_box() {
    if (!box_.has_value() || account_.stage() >= contract::Stage::box_gone) return;
    // Lost already: it has had every bound that it is given.
    if (account_.settlement().outcome() == contract::Outcome::lost) return account_.settle(false);
    box_->kill();
    if (box_->wait_gone(kEndBound)) {
      account_.settlement().box_gone(true, now());
      account_.event(contract::event_type::box_gone,
                     {{"killed", true}, {"took_ms", account_.settlement().took_ms()}});
      return;
    }
    account_.settlement().lost("box", "the box could not be ended within the bound", box_->describe(), now());
    account_.settle(false);
  }

  void close_storage() {
    box_.reset();
    if (account_.broken().has_value() && storage_.has_value()) {
      // The account cannot be closed now. Whoever can write the ledger again finds the work.
      storage_->abandon();
      cancel_.reset();
      return;
    }
    if (storage_.has_value()) {
      if (Status released = storage_->release(); !released) {
        account_.settlement().lost("storage", printable(released.error().line(), 2000), storage_->describe(),
                                   now());
      }
    }
    ::unlink((dir_ + "/keeper").c_str());
    cancel_.reset();
  }

  const Host& host_;
  const Invocation& invocation_;
  const Controls& controls_;
  Readied ready_;
  Account& account_;
  std::string dir_;
  SteadyClock::time_point deadline_;
  std::optional<CancelSources> cancel_;
  std::optional<clone::Cloned> cloned_;
  SourceReport look_;
  std::optional<workspace::Storage> storage_;
  std::optional<OutputStream> out_;
  std::optional<OutputStream> err_;
  std::optional<sandbox::Box> box_;
  std::optional<egress::Gateway> gateway_;
};

// Whether the ledger has this attempt already. Code::conflict when its id belongs to another invocation.
Result<bool> is_known(ledger::Ledger& ledger, const Invocation& invocation) {
  TRY(const auto record, ledger.find(invocation->attempt_id));
  if (!record.has_value()) return false;
  if (record->attempt.invocation_sha256 == invocation.sha256()) return true;
  return make_error(Code::conflict,
                    fmt::format("attempt id \"{}\" belongs to a different invocation, admitted before",
                                invocation->attempt_id),
                    "an attempt id is used once: choose a new one");
}

// The lock on the id, or none when another process has admitted it.
Result<std::optional<AttemptLock>> lock_id(const Host& host, ledger::Ledger& ledger,
                                           const Invocation& invocation) {
  const auto end = SteadyClock::now() + kAdmissionBound;
  while (SteadyClock::now() < end) {
    TRY(std::optional<AttemptLock> lock, AttemptLock::try_take(host.state_dir, invocation->attempt_id));
    TRY(const bool known, is_known(ledger, invocation));
    if (known) return std::optional<AttemptLock>{};
    if (lock.has_value()) return lock;
    ::poll(nullptr, 0, 20);  // whoever holds it is about to admit it, or cleans up
  }
  return make_error(Code::conflict,
                    fmt::format("another process holds the attempt id \"{}\"", invocation->attempt_id),
                    "choose a new one, or see which process hangs");
}

// The attempt is over, whatever becomes of the cache: `cofferdam prune` would say what is wrong with it.
void tidy_vault(const Host& host) {
  auto ledger = ledger::Ledger::open(ledger::ledger_path(host.state_dir));
  if (ledger) (void)bound_cache(host.state_dir, *ledger, host.config.cache_max_bytes).has_value();
}

}  // namespace

Result<contract::ResultRecord> run(const Host& host, const Invocation& invocation, const Controls& controls) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader of ours that goes away must not end the attempt
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(host.state_dir)));
  TRY(const bool known, is_known(ledger, invocation));
  if (known) return follow(host, invocation->attempt_id, controls);
  TRY(Readied readied, ready(host, invocation));
  TRY(std::optional<AttemptLock> lock, lock_id(host, ledger, invocation));
  if (!lock.has_value()) return follow(host, invocation->attempt_id, controls);
  TRY(Account account, Account::admit(std::move(ledger), invocation, capacity_of(host), controls.on_event));
  {
    Attempt attempt(host, invocation, controls, std::move(readied), account);
    attempt.follow();
  }
  auto closed = account.close();
  failpoint("closed");
  tidy_vault(host);
  return closed;
}

}  // namespace cofferdam::attempt
