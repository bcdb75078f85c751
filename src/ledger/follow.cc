// Reading the events of an attempt while another process adds to them.
#include "ledger/impl.h"

namespace cofferdam::ledger {

Result<std::vector<contract::Event>> Ledger::events_after(const std::string& attempt_id, std::uint64_t seq,
                                                          std::size_t limit) {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<contract::Event>> {
    auto query = prepare_with(*impl_->db,
                              "SELECT seq, at, type, data FROM events WHERE attempt_id = ?1 AND seq > ?2"
                              " ORDER BY seq LIMIT ?3",
                              attempt_id, static_cast<std::int64_t>(seq), static_cast<std::int64_t>(limit));
    std::vector<contract::Event> events;
    while (query.executeStep()) events.push_back(event_from(query, attempt_id));
    return events;
  });
}

// A number from the file's shared index: no page is read for it (PRAGMA data_version).
Result<std::int64_t> Ledger::data_version() {
  return guarded("cannot read the ledger", [&]() -> Result<std::int64_t> {
    return impl_->db->execAndGet("PRAGMA data_version").getInt64();
  });
}

}  // namespace cofferdam::ledger
