// The control table: every restriction of a box as data. It drives the comparison with what the probes found,
// the result's controls[], `cofferdam doctor`, the gate and the table in SECURITY.md.
//
// Thread rules: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/invocation.h"

namespace cofferdam::contract {

// A required control that is not proven means that the box does not run. One that is best-effort is in the
// result as not in force.
enum class Need { required, best_effort };
const char* need_name(Need need);

// In which way boxes are made here, which decides what a host can be asked for.
enum class Mode {
  root,         // the supervisor is root; boxes have a user of their own
  rootless,     // the supervisor is an ordinary user, and control groups have been handed to it
  undelegated,  // the same without control groups
};
const char* mode_name(Mode mode);

// Whether a control has a part in boxes whose shell is "none", or in others.
enum class ShellNeed {
  same,      // no difference
  stricter,  // required there, whatever the mode's default is
  only,      // there alone: the other boxes do not have it, and their results do not list it
};

struct Control {
  const char* name;
  const char* what;       // what is in force
  const char* why;        // what it stops
  Need need[3];           // by default, by Mode
  const char* proven_by;  // "inside", or "outside"
  // What a user can do where it cannot be had; empty: nothing but another host.
  const char* fix;
  ShellNeed shell = ShellNeed::same;
};

const std::vector<Control>& control_table();
const Control* find_control(std::string_view name);  // null: there is none of that name

// What the configuration says otherwise, by the control's name.
using ControlChoices = std::map<std::string, Need>;
Need need_of(const Control& control, Mode mode, const ControlChoices& choices,
             Shell shell = Shell::sandboxed);

}  // namespace cofferdam::contract
