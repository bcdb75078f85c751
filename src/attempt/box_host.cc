#include "attempt/box_host.h"

#include <unistd.h>

namespace cofferdam::attempt {

sandbox::BoxHost box_host(const Host& host) {
  sandbox::BoxHost boxes;
  boxes.init = host.init;
  if (::geteuid() == 0) boxes.run_as = UserIds{host.config.box_uid, host.config.box_uid};
  boxes.requirements.mode = boxes.run_as ? contract::Mode::root : contract::Mode::undelegated;
  boxes.requirements.choices = host.config.controls;
  return boxes;
}

}  // namespace cofferdam::attempt
