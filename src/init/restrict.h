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
void set_limits(const plan::Plan& plan);
void load_seccomp(const std::string& filter);

}  // namespace cofferdam::init
