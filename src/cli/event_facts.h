// What of an event's data a person reads: values made printable, each on one line, bounded. For `run`'s
// progress and for `log`.
#pragma once

#include <string>

#include "contract/event.h"
#include "contract/json.h"

namespace cofferdam::cli {

// The event's data as an object, empty when it is none.
contract::Json event_data(const contract::Event& event);
// The member, or null.
const contract::Json& member(const contract::Json& object, const char* key);
// A string, a number or a boolean as text; empty for everything else.
std::string text_of(const contract::Json& value);
// "key value, key value" of the members that have one short value each; nested ones are for --json and show.
std::string scalars(const contract::Json& data);
// "Edit src/a.c": the tool and the one argument that tells a reader most.
std::string tool_call(const contract::Json& data);
// An agent's event with its own data at the top, whichever of the two forms it has.
const contract::Json& agent_data(const contract::Json& event);

}  // namespace cofferdam::cli
