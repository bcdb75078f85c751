// The attacks of `cofferdam gate` as data. Each is one act of cofferdam-probe, and names the layers that stop
// it, each by itself. To add one: a row in one of the attacks_*.cc, and an act in src/probe if none fits.
//
// Thread rules: pure functions.
#pragma once

#include <string>
#include <vector>

namespace cofferdam::gate {

// What kind of box an attack runs in.
enum class Setting {
  agent,     // of a phase that may write
  planning,  // of one that may not
  small,     // with bounds on memory and processes that a harmless act passes
};

// What a host has to be like for the control to be shown. Where it is not, the row says so and why.
enum class Need {
  nothing,
  root,           // only root can have a box whose user is the host's root
  tracing,        // Yama lets a process trace one that is not its child
  terminal,       // the kernel itself lets a program type into its terminal
  route_v4,       // the host has a route that the box could use
  route_v6,       //
  route,          // one of the two
  core_limit,     // the caller's own hard limits are higher than those of a box
  file_limit,     //
  memlock_limit,  //
  groups,         // boxes have control groups here
  landlock_scope  // Landlock knows signals and abstract sockets (ABI 6)
};

struct Attack {
  std::string id;
  std::string control;              // of contract/controls.cc; empty: of none
  std::string classes;              // rows of the lists that it stands for, "D13 C7"
  std::vector<std::string> layers;  // empty: the act has to work in every box (a build needs it)
  std::string what;
  // Argument of cofferdam-probe, with $NAMES of canary.h; or "own-probe CONTROL": what the box's own probe of
  // that control says.
  std::string act;
  Setting setting = Setting::agent;
  Need need = Need::nothing;
  bool by_itself = false;  // in a box that nothing else runs in: the box may be ended for it
  // Layers that stop it too, on some kernels: they are left out beside the others, and shown elsewhere.
  std::vector<std::string> aside = {};
};

// What no act in a box can show.
struct NotApplicable {
  std::string id;  // "D27", or the name of a control
  std::string reason;
};

// Layers that are no part of a box's plan but of what it is made with: a storage with wider bounds, and a
// box of root's own.
inline constexpr const char* kStorageBound = "storage-bound";
inline constexpr const char* kHostRootUnmapped = "host-root-unmapped";

std::vector<Attack> attacks();  // all of them, ids are unique
std::vector<NotApplicable> not_applicable();

// The parts of attacks().
void add_namespace_attacks(std::vector<Attack>* out);
void add_file_attacks(std::vector<Attack>* out);
void add_call_attacks(std::vector<Attack>* out);
void add_own_probes(std::vector<Attack>* out);

}  // namespace cofferdam::gate
