#include "contract/lifecycle.h"

#include <array>

#include "contract/event.h"

namespace cofferdam::contract {
namespace {

constexpr std::array kNames = {
    "none",
    event_type::queued,
    event_type::admitted,
    event_type::cloned,
    event_type::workspace_ready,
    event_type::box_ready,
    event_type::gateway_ready,
    event_type::started,
    event_type::process_ended,
    event_type::box_gone,
    event_type::settled,
    event_type::snapshot,
    event_type::committed,
    event_type::publishing,
    event_type::published,
    event_type::not_published,
    event_type::finished,
};

constexpr bool between(Stage stage, Stage first, Stage last) {
  return stage >= first && stage <= last;
}

// Reports that leave the stage as it is, and where they can come.
bool is_remark(Stage from, std::string_view type) {
  if (type == event_type::queued) return from == Stage::queued;  // a new position
  // What the agent's stream and the gateway still held when the box was gone is read before `settled`.
  if (type == event_type::agent || type == event_type::answered)
    return between(from, Stage::started, Stage::box_gone);
  if (type == event_type::checkpointed) return between(from, Stage::started, Stage::process_ended);
  if (type == event_type::source) return between(from, Stage::cloned, Stage::box_gone);
  if (type == event_type::egress) return between(from, Stage::gateway_ready, Stage::box_gone);
  if (type == event_type::cancel_requested || type == event_type::recovered)
    return from != Stage::none && from != Stage::finished;
  return false;
}

}  // namespace

const char* stage_name(Stage stage) {
  return kNames[static_cast<std::size_t>(stage)];
}

std::optional<Stage> stage_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

const std::vector<Transition>& transitions() {
  using enum Stage;
  static const std::vector<Transition> kTable = {
      {none, queued},
      {none, admitted},
      {queued, admitted},
      {queued, finished},  // cancelled, or refused, while it waited
      {admitted, cloned},
      {cloned, workspace_ready},
      {workspace_ready, box_ready},
      {box_ready, gateway_ready},
      {box_ready, started},
      {gateway_ready, started},
      {started, process_ended},
      {process_ended, box_gone},
      // Killed before its program could be reaped, or before it was started.
      {started, box_gone},
      {box_ready, box_gone},
      {gateway_ready, box_gone},
      {box_gone, settled},
      // Nothing was started, or the box could not be ended in its bound: `lost`.
      {admitted, settled},
      {cloned, settled},
      {workspace_ready, settled},
      {box_ready, settled},
      {gateway_ready, settled},
      {started, settled},
      {process_ended, settled},
      {settled, snapshot},
      {settled, finished},
      {snapshot, committed},
      {snapshot, finished},  // nothing was changed, a read-only phase, or the change was refused
      {committed, publishing},
      {committed, not_published},  // its context is stale
      {committed, finished},       // the attempt did not complete
      {publishing, published},
      {publishing, not_published},
      {not_published, publishing},  // tried again while there is no result
      {not_published, finished},
      {published, finished},
  };
  return kTable;
}

std::optional<Stage> next_stage(Stage from, std::string_view event_type) {
  if (is_remark(from, event_type)) return from;
  for (const Transition& transition : transitions()) {
    if (transition.from == from && event_type == stage_name(transition.to)) return transition.to;
  }
  return std::nullopt;
}

}  // namespace cofferdam::contract
