#include "gate/box_run.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/failpoint.h"
#include "base/io.h"
#include "base/text.h"
#include "init/plan.h"
#include "workspace/storage.h"

namespace cofferdam::gate {
namespace {

constexpr std::uint64_t kWorkBytes = 2U << 20U;
constexpr std::uint64_t kWorkInodes = 256;
constexpr std::uint64_t kScratchBytes = 1U << 20U;
constexpr std::uint64_t kScratchInodes = 128;
constexpr std::uint64_t kWider = 16;
constexpr std::uint64_t kMemory = 32U << 20U;
constexpr std::uint64_t kPids = 20;
constexpr std::size_t kMaxOutput = 128U << 10U;
constexpr std::chrono::seconds kDeadline{60};
constexpr std::chrono::seconds kEndBound{30};
constexpr const char* kOwnProbe = "own-probe ";

// The layers that this box goes without, and the one that a test wants to be broken in all of them.
std::set<std::string> left_out(const BoxKind& kind) {
  std::set<std::string> without = kind.without;
  if (std::string broken = failpoint_text("gate-without"); !broken.empty()) without.insert(std::move(broken));
  return without;
}

Status check_layers(const std::set<std::string>& without) {
  for (const std::string& layer : without) {
    const bool planned = std::find(std::begin(plan::kLayerNames), std::end(plan::kLayerNames), layer) !=
                         std::end(plan::kLayerNames);
    if (!planned && layer != kStorageBound && layer != kHostRootUnmapped)
      return make_error(Code::internal, "no layer is called " + layer);
  }
  return {};
}

contract::Profile profile_of(const BoxKind& kind, const Canary& canary,
                             const std::set<std::string>& without) {
  contract::Profile profile;
  profile.kind = "gate";
  profile.env = {"HOME=/home/agent", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  const bool planning = kind.setting == Setting::planning;
  profile.work = planning ? contract::Access::read_only : contract::Access::read_write;
  profile.metadata = contract::Access::read_only;
  profile.agent_dir = canary.agent_dir();
  profile.scratch_bytes = kScratchBytes;
  profile.scratch_inodes = kScratchInodes;
  profile.work_bytes = kWorkBytes;
  profile.work_inodes = kWorkInodes;
  profile.deadline = kDeadline;
  if (kind.setting == Setting::small) {
    profile.memory_bytes = kMemory;
    profile.pids = kPids;
  }
  profile.without.assign(without.begin(), without.end());
  return profile;
}

// Nothing is required of a box here: what it lacks is what the attacks are to find.
sandbox::BoxHost lenient(sandbox::BoxHost host, const std::set<std::string>& without) {
  for (const contract::Control& control : contract::control_table()) {
    host.requirements.choices[control.name] = contract::Need::best_effort;
  }
  if (without.count(kHostRootUnmapped) != 0) host.run_as.reset();
  return host;
}

Result<workspace::Storage> make_storage(const sandbox::BoxHost& host, const std::set<std::string>& without) {
  const std::uint64_t factor = without.count(kStorageBound) != 0 ? kWider : 1;
  workspace::StorageOptions options;
  options.init = host.init;
  options.run_as = host.run_as;
  options.work_bytes = kWorkBytes * factor;
  options.work_inodes = kWorkInodes * factor;
  return workspace::Storage::create(options);
}

Outcome of_own_probe(const std::vector<contract::ControlFact>& facts, const std::string& control) {
  for (const contract::ControlFact& fact : facts) {
    if (fact.name == control)
      return {fact.enforced ? Answer::denied : Answer::allowed, printable(fact.proof, 200)};
  }
  return {Answer::error, "no such control"};
}

struct Said {
  std::string text;
  std::string over;  // the limit for which init has ended the box; empty: none
};

// One message of init; false at its end.
Result<bool> take_message(sandbox::Box* box, Said* said) {
  TRY(const sandbox::BoxReport report, box->receive());
  using Kind = sandbox::BoxReport::Kind;
  if (report.kind == Kind::not_started)
    return sys_error("cannot start cofferdam-probe in the box", report.error);
  if (report.kind == Kind::deadline) return make_error(Code::timeout, "the box ran into its deadline");
  if (report.kind == Kind::over) said->over = report.control;
  return report.kind != Kind::lost;
}

// Until init is gone and the pipe is at its end.
Result<Said> listen(sandbox::Box* box, UniqueFd out) {
  Said said;
  bool living = true;
  while (living || out.valid()) {
    pollfd entries[2] = {{living ? box->control_fd() : -1, POLLIN, 0}, {out.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return sys_error("poll", errno);
    if (entries[0].revents != 0) {
      TRY(living, take_message(box, &said));
    }
    if (entries[1].revents == 0) continue;
    bool would_block = false;
    TRY(const std::string bytes, read_some(out.get(), 65536, &would_block));
    if (bytes.empty() && !would_block) out.reset();
    said.text += bytes;
    if (said.text.size() > kMaxOutput) return make_error(Code::protocol, "a box said too much");
  }
  return said;
}

// The ids of the attacks that are acts of cofferdam-probe, in their order.
std::vector<std::string> add_acts(const Canary& canary, const std::vector<Attack>& attacks, bool watched,
                                  contract::Profile* profile) {
  std::vector<std::string> ids;
  profile->argv = {"/opt/agent/cofferdam-probe"};
  for (const Attack& attack : attacks) {
    if (starts_with(attack.act, kOwnProbe)) continue;
    ids.push_back(attack.id);
    profile->argv.push_back(canary.fill_in(attack.act, watched));
  }
  return ids;
}

void take_answers(const Said& said, const std::vector<std::string>& ids,
                  std::map<std::string, Outcome>* out) {
  const std::vector<Outcome> answers = parse_answers(said.text, ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    (*out)[ids[i]] = answers[i];
    // An act that init has ended the box for is denied.
    if (!said.over.empty() && ids.size() == 1 && answers[i].answer == Answer::error)
      (*out)[ids[i]] = {Answer::denied, "the box was ended: " + said.over};
  }
}

}  // namespace

Result<std::map<std::string, Outcome>> run_in_box(const sandbox::BoxHost& given, const Canary& canary,
                                                  const BoxKind& kind, const std::vector<Attack>& attacks) {
  const std::set<std::string> without = left_out(kind);
  TRY_VOID(check_layers(without));
  const sandbox::BoxHost host = lenient(given, without);
  TRY(workspace::Storage storage, make_storage(host, without));
  std::map<std::string, Outcome> outcomes;
  contract::Profile profile = profile_of(kind, canary, without);
  const bool watched = without.count("watch") == 0;
  const std::vector<std::string> ids = add_acts(canary, attacks, watched, &profile);
  TRY(Pipe out, make_pipe());
  // The folder is declared as descriptor 5 and nothing else: there it may be used, elsewhere it has leaked.
  profile.fds = {{canary.terminal_fd(), 0}, {out.write.get(), 1}, {canary.folder_fd(), 5}};
  {
    TRY(sandbox::Box box, sandbox::Box::start(host, storage.ref(), profile));
    out.write.reset();
    for (const Attack& attack : attacks) {
      if (!starts_with(attack.act, kOwnProbe)) continue;
      outcomes[attack.id] = of_own_probe(box.controls(), attack.act.substr(std::string(kOwnProbe).size()));
    }
    if (!ids.empty()) {
      TRY_VOID(box.go());
      TRY(Said said, listen(&box, std::move(out.read)));
      const auto group = box.group_facts();
      if (group.has_value() && group->oom_kills > 0) said.over = "memory, by its control group";
      TRY_VOID(box.wait_gone(kEndBound));
      take_answers(said, ids, &outcomes);
    }
  }
  TRY_VOID(storage.release());
  return outcomes;
}

}  // namespace cofferdam::gate
