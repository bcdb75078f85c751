// verify: whether the ledger is what was written, by its own hash chain and by a result that was printed.
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/records.h"
#include "cli/verbs.h"
#include "cli/verify_report.h"
#include "contract/result_shape.h"

namespace cofferdam::cli {
namespace {

Result<contract::ResultRecord> read_printed(const std::string& file) {
  // Twice: `exec` prints the events before it.
  constexpr std::size_t kMaxBytes = 2 * contract::kMaxResultBytes;
  auto text = file == "-" ? read_to_end(STDIN_FILENO, kMaxBytes) : read_file(file, kMaxBytes);
  if (!text) {
    Error error = std::move(text).error();
    error.code = Code::usage;  // absent, unreadable or too large: another FILE is needed
    return error;
  }
  return decode_printed(*text);
}

ledger::ChainReport not_there(const std::string& id) {
  ledger::ChainReport report;
  report.attempt_id = id;
  report.problem = "there is a printed result, but no such attempt in the ledger: it was removed";
  return report;
}

// The chain of one attempt and, if it holds, the printed result against it.
Result<ledger::ChainReport> verify_one(Records& records, const std::string& id,
                                       const std::optional<contract::ResultRecord>& printed) {
  auto report = records.ledger.verify(id);
  if (!report && report.error().code == Code::not_found && printed) return not_there(id);
  if (!report || !report->intact || !printed) return report;
  TRY(const std::optional<ledger::AttemptRecord> record, records.ledger.find(id));
  if (record) {
    report->problem = compare_record(*printed, *record);
  } else {
    TRY(const std::optional<ledger::Tombstone> tombstone, records.ledger.find_tombstone(id));
    if (!tombstone) return not_there(id);
    report->problem = compare_tombstone(*printed, *tombstone);
  }
  report->intact = report->problem.empty();
  return report;
}

Result<ledger::FileReport> make_report(const VerifyOptions& options) {
  std::optional<contract::ResultRecord> printed;
  if (options.result) {
    TRY(printed, read_printed(*options.result));
    if (options.id && *options.id != printed->attempt_id) {
      return make_error(Code::usage, "the printed result is that of attempt " + printed->attempt_id,
                        "leave the id out, or name that one");
    }
  }
  std::optional<std::string> id = options.id;
  if (printed) id = printed->attempt_id;
  ledger::FileReport report;
  if (id) TRY_VOID(check_attempt_id(*id));
  TRY(std::optional<Records> records, open_records());
  if (!records) {
    if (printed) report.attempts.push_back(not_there(*id));
    if (id && !printed) TRY_VOID(records_for(*id));
    return report;
  }
  if (!id) return records->ledger.verify_all();
  TRY(ledger::ChainReport one, verify_one(*records, *id, printed));
  report.attempts.push_back(std::move(one));
  return report;
}

}  // namespace

Result<int> verify_verb(const VerifyOptions& options) {
  TRY(const ledger::FileReport report, make_report(options));
  TRY_VOID(print_out(options.json ? verify_json(report) : verify_text(report)));
  return all_intact(report) ? 0 : kExitNotIntact;
}

}  // namespace cofferdam::cli
