#include "attempt/box_host.h"

#include <unistd.h>

#include <memory>

#include "sandbox/native/cgroup.h"

namespace cofferdam::attempt {

sandbox::BoxHost box_host(const Host& host, const std::string& name) {
  sandbox::BoxHost boxes;
  boxes.init = host.init;
  const bool root = ::geteuid() == 0;
  if (root) boxes.run_as = UserIds{host.config.box_uid, host.config.box_uid};
  sandbox::CgroupPlace place = sandbox::find_cgroup_place(host.config.cgroup);
  boxes.requirements.mode = contract::Mode::undelegated;
  if (place.usable()) {
    boxes.requirements.mode = contract::Mode::rootless;
    boxes.groups = std::make_shared<sandbox::AttemptGroup>(std::move(place), name);
  } else {
    boxes.why_no_groups = std::move(place.why_not);
  }
  if (root) boxes.requirements.mode = contract::Mode::root;
  boxes.requirements.choices = host.config.controls;
  return boxes;
}

Status sweep_groups(const Host& host) {
  return sandbox::sweep_cgroups(sandbox::find_cgroup_place(host.config.cgroup));
}

}  // namespace cofferdam::attempt
