// Giving things up: the order in which box.cc calls these is part of their meaning.
#pragma once

#include <string>

#include "init/plan.h"

namespace cofferdam::init {

// unshare(CLONE_NEWUSER | extra): one uid and one gid, `inside` -> whatever we are outside.
// user_namespaces(7): setgroups is denied first, as the kernel demands of an unprivileged writer.
void enter_user_namespace(int extra_flags, unsigned inside_uid, unsigned inside_gid);
void forbid_user_namespaces();  // user.max_user_namespaces = 0 in the current user namespace
void drop_capabilities();       // all five sets, bounding and ambient included
// The opposite, for a box of the gate's: what we hold in our user namespace outlives execve(2).
void keep_capabilities();
// A session of our own. Without that layer the terminal that is our standard input, if it is one, becomes the
// controlling one: what a program has that was left in its caller's session.
void start_session(const plan::Plan& plan);
void set_limits(const plan::Plan& plan);
void load_seccomp(const std::string& filter);

}  // namespace cofferdam::init
