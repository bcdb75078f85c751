// Captured contexts: which version of each is the current one.
#include <fmt/core.h>

#include "contract/json.h"
#include "contract/rules.h"
#include "ledger/impl.h"

namespace cofferdam::ledger {
namespace {

Context context_from(SQLite::Statement& row) {
  Context out;
  out.name = row.getColumn(0).getString();
  out.version = static_cast<std::uint64_t>(row.getColumn(1).getInt64());
  if (!row.getColumn(2).isNull()) out.sha256 = row.getColumn(2).getString();
  out.changed_at = Timestamp{row.getColumn(3).getInt64()};
  return out;
}

std::optional<Context> read_context(SQLite::Database& db, const std::string& name) {
  auto query =
      prepare_with(db, "SELECT name, version, sha256, changed_at FROM contexts WHERE name = ?1", name);
  if (!query.executeStep()) return std::nullopt;
  return context_from(query);
}

std::string set_command(const contract::CapturedContext& context, std::uint64_t from) {
  return fmt::format("`cofferdam context set {} --from {} --to {} --sha256 {}`", context.name, from,
                     context.version, context.sha256);
}

Status check_change(const std::string& name, std::uint64_t from, std::uint64_t to,
                    const std::optional<std::string>& sha256) {
  if (!contract::is_context_name(name)) {
    return make_error(Code::usage, "the name of a context must be 1 to 128 of A-Z, a-z, 0-9 and . _ / -");
  }
  if (to <= from || to > contract::kMaxJsonInteger) {
    return make_error(
        Code::usage,
        fmt::format("a context goes from a version to a higher one, not from {} to {}", from, to));
  }
  if (sha256.has_value() && !contract::is_sha256(*sha256)) {
    return make_error(Code::usage, "the SHA-256 of a context must be 64 lower-case hexadecimal digits");
  }
  return {};
}

// Compare: what stands there must be what the caller has seen.
Status check_from(const std::string& name, std::uint64_t from, const std::optional<Context>& current) {
  const std::uint64_t version = current.has_value() ? current->version : 0;
  if (version == from) return {};
  if (version == 0) {
    return make_error(Code::conflict, fmt::format("there is no context \"{}\" yet", name),
                      "use --from 0 to make it");
  }
  return make_error(
      Code::conflict, fmt::format("the context \"{}\" is at version {}, not {}", name, version, from),
      fmt::format("somebody else has changed it: `cofferdam context show {}`, then decide again", name));
}

}  // namespace

Status check_context(SQLite::Database& db, const contract::CapturedContext& context) {
  const std::optional<Context> current = read_context(db, context.name);
  if (!current.has_value()) {
    return make_error(Code::conflict,
                      fmt::format("the context \"{}\" is not known to the ledger", context.name),
                      "make it known: " + set_command(context, 0));
  }
  if (current->version != context.version) {
    return make_error(Code::conflict,
                      fmt::format("the context \"{}\" is at version {}, the attempt was made from version {}",
                                  context.name, current->version, context.version),
                      current->version > context.version
                          ? fmt::format("make a new invocation from version {}", current->version)
                          : "if that is the current one now: " + set_command(context, current->version));
  }
  if (current->sha256.has_value() && *current->sha256 != context.sha256) {
    return make_error(Code::conflict,
                      fmt::format("version {} of the context \"{}\" has the SHA-256 {}, the attempt names {}",
                                  context.version, context.name, *current->sha256, context.sha256),
                      "make a new invocation from what the context is now");
  }
  return {};
}

Result<Context> Ledger::set_context(const std::string& name, std::uint64_t from, std::uint64_t to,
                                    const std::optional<std::string>& sha256) {
  TRY_VOID(check_change(name, from, to, sha256));
  return impl_->write("cannot change the context", [&](SQLite::Database& db) -> Result<Context> {
    TRY_VOID(check_from(name, from, read_context(db, name)));
    const Context changed{name, to, sha256, impl_->now()};
    prepare_with(db,
                 from == 0 ? Sql("INSERT INTO contexts (name, version, sha256, changed_at)"
                                 " VALUES (?1, ?2, ?3, ?4)")
                           : Sql("UPDATE contexts SET version = ?2, sha256 = ?3, changed_at = ?4"
                                 " WHERE name = ?1"),
                 name, static_cast<std::int64_t>(to), sha256, changed.changed_at)
        .exec();
    return changed;
  });
}

Result<std::optional<Context>> Ledger::context(const std::string& name) {
  return guarded("cannot read the ledger",
                 [&]() -> Result<std::optional<Context>> { return read_context(*impl_->db, name); });
}

Result<std::vector<Context>> Ledger::contexts() {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<Context>> {
    auto query = prepare(*impl_->db, "SELECT name, version, sha256, changed_at FROM contexts ORDER BY name");
    std::vector<Context> out;
    while (query.executeStep()) out.push_back(context_from(query));
    return out;
  });
}

}  // namespace cofferdam::ledger
