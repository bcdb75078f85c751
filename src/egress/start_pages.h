// What only the start needed does not stay in memory: hundreds of gateways may idle on a host.
#pragma once

namespace cofferdam::egress {

// Gives back freed memory of the heap, and the pages of programs and libraries that nothing has written to;
// what is needed again comes back from the page cache. Cannot fail: at worst, nothing changes.
void release_start_pages();

}  // namespace cofferdam::egress
