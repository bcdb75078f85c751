#include "ledger/sql.h"

#include <sqlite3.h>

namespace cofferdam::ledger {

Error sqlite_error(const std::string& doing, const SQLite::Exception& exception) {
  const std::string what = doing + ": " + exception.what();
  switch (exception.getErrorCode()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return make_error(Code::timeout, what,
                        "another program keeps the ledger locked for longer than is waited: see which one "
                        "has it open, and whether it hangs");
    case SQLITE_FULL:
      return make_error(Code::exhausted, what, "free space where the state folder lies");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return make_error(Code::protocol, what,
                        "the file is damaged or not a ledger: move it away and start a new one");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return make_error(Code::denied, what,
                        "the state folder must be there and writable, to read the ledger too");
    case SQLITE_CONSTRAINT:
      // A refusal by one of the schema's triggers; the ones that callers can run into have better words
      // already.
      return make_error(Code::conflict, what);
    default:
      return make_error(Code::io, what);
  }
}

}  // namespace cofferdam::ledger
