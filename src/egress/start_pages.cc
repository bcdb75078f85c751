#include "egress/start_pages.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace cofferdam::egress {
namespace {

// Relocated data is in the writable segments, which stay; the rest is the file's, letter by letter.
int release_segments(dl_phdr_info* info, std::size_t /*size*/, void* /*unused*/) {
  if (info->dlpi_addr == ::getauxval(AT_SYSINFO_EHDR)) return 0;  // the kernel's own, not a file's
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t first = start / page * page;
    (void)::madvise(reinterpret_cast<void*>(first), start + segment.p_memsz - first, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_start_pages() {
  (void)::malloc_trim(0);
  (void)::dl_iterate_phdr(&release_segments, nullptr);
}

}  // namespace cofferdam::egress
