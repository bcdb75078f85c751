// Names of the moments at which a test can let a process of ours die. In the program that is shipped the
// functions are empty; a test build links others in their place (tests/faults/failpoint_on.cc).
#pragma once

#include <sys/types.h>

#include <string>

namespace cofferdam {

// A step has been, or is about to be, taken.
void failpoint(const char* name);
// Of a child that plays a part ("keeper", "box", "gateway", "broker"): a test may end that one instead.
void failpoint_part(const char* part, pid_t pid);
// What a test asks for at that point; empty in the program that is shipped.
std::string failpoint_text(const char* name);

}  // namespace cofferdam
