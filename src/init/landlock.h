// Landlock, by raw system calls: rules over files, abstract sockets and signals for everything in the box but
// init, which stays outside the domain and is protected by it. The rules are the plan's.
#pragma once

#include "init/plan.h"

namespace cofferdam::init {

// Of the running kernel; 0: it has none. ABI 1 refuses every rename between folders, so it is not used.
unsigned landlock_abi();

// The plan's rules as far as this kernel knows them, once the root is in place; a descriptor for the children
// of init, out of the way of the program's, or -1 when Landlock is not used. Ends init when it cannot be
// built.
int make_landlock(const plan::Plan& plan);

// In a child of init, with no_new_privs: from here on, and for all its descendants. False: errno.
bool enter_landlock(int ruleset);

}  // namespace cofferdam::init
