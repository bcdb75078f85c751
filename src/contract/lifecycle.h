// The states of an attempt and which event leads from where to where. docs/lifecycle.md has the picture; a
// test holds it to this table.
//
// Thread rules: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::contract {

// The stage is named after the event that led to it. Events that report without a change of state (agent,
// egress, source, checkpointed, cancel-requested, answered, recovered, and queued while queued) are in no
// stage's name.
enum class Stage {
  none,  // before the first event
  queued,
  admitted,
  cloned,
  workspace_ready,
  box_ready,
  gateway_ready,
  started,
  process_ended,
  box_gone,
  settled,
  snapshot,
  committed,
  publishing,
  published,
  not_published,
  finished,
};
const char* stage_name(Stage stage);  // the type of its event; "none" before the first
std::optional<Stage> stage_from_name(std::string_view name);

// Where an event leads, or nullopt when it cannot happen in that stage.
std::optional<Stage> next_stage(Stage from, std::string_view event_type);

// Every transition that changes the stage, for documentation and tests.
struct Transition {
  Stage from;
  Stage to;
};
const std::vector<Transition>& transitions();

}  // namespace cofferdam::contract
