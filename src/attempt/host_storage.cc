#include "attempt/host_storage.h"

#include <unistd.h>

#include "workspace/image.h"
#include "workspace/slots.h"

namespace cofferdam::attempt {

Result<HostStorage> look_at_storage(const contract::Config& config) {
  using contract::WorkStorage;
  HostStorage storage;
  storage.kind = "tmpfs";
  const contract::Limits& limits = config.limits;
  if (config.work_storage == WorkStorage::memory) return storage;
  if (::geteuid() == 0) {
    const bool large = limits.work_bytes >= workspace::kLeastImageBytes &&
                       limits.work_inodes >= workspace::kLeastImageInodes;
    if (large && workspace::can_make_images()) storage.kind = "image";
    return storage;
  }
  if (config.work_storage == WorkStorage::image) return storage;
  TRY(const workspace::SlotCount count,
      workspace::count_slots(config.slots_dir, ::geteuid(), limits.work_bytes, limits.work_inodes));
  storage.slots = count.all;
  storage.fitting = count.fitting;
  storage.free = count.free;
  storage.slot_bytes = count.bytes;
  if (count.fitting > 0 || config.work_storage == WorkStorage::slot) storage.kind = "slot";
  return storage;
}

}  // namespace cofferdam::attempt
