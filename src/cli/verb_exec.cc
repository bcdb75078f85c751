// exec: an invocation in JSON in, its events and its result as JSON lines out. For programs.
#include <unistd.h>

#include "attempt/lock.h"
#include "attempt/run.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/event_writer.h"
#include "cli/host.h"
#include "cli/scanner.h"
#include "cli/verbs.h"
#include "contract/event.h"
#include "contract/invocation.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {
namespace {

Result<Document> read_request(const ExecOptions& options) {
  if (options.file == "-") return read_document(STDIN_FILENO, contract::kMaxInvocationBytes);
  if (options.cancel_on_eof) {
    return make_error(Code::usage, "--cancel-on-eof is for an invocation on standard input",
                      "use: cofferdam exec - --cancel-on-eof");
  }
  auto text = read_file(options.file, contract::kMaxInvocationBytes);
  if (text) return Document{*std::move(text), ""};
  Error error = std::move(text).error();
  error.code = Code::usage;  // absent, unreadable or too large: another FILE is needed
  return error;
}

Result<contract::Invocation> decode_request(const ExecOptions& options, const Document& document) {
  const std::string source = options.file == "-" ? "standard input" : options.file;
  if (trim(document.text).empty()) return make_error(Code::usage, source + " holds no invocation");
  auto invocation = contract::decode_invocation(document.text);
  if (invocation) return invocation;
  Error error = std::move(invocation).error().with("invocation on " + source);
  error.code = Code::usage;
  return error;
}

}  // namespace

Result<int> exec_verb(const ExecOptions& options) {
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  TRY(const Document document, read_request(options));
  TRY(const contract::Invocation invocation, decode_request(options, document));
  config.capture_bodies = config.capture_bodies || options.capture_bodies;
  TRY(const attempt::Host host, make_host(environment, std::move(config)));
  warn_of_capture(host.config, attempt::folder_of(host.state_dir, invocation->attempt_id));
  attempt::Controls controls;
  if (options.file == "-") {
    controls.cancel_fd = STDIN_FILENO;
    controls.cancel_pending = document.leftover;
    controls.cancel_on_eof = options.cancel_on_eof;
  }
  // A reader that stalls or has gone away holds up nothing: the account is in the ledger.
  EventWriter writer(ledger::ledger_path(host.state_dir), invocation->attempt_id, STDOUT_FILENO);
  controls.on_event = [&writer](const contract::Event& event) { writer.reached(event.seq); };
  TRY(const contract::ResultRecord result, attempt::run(host, invocation, controls));
  writer.finish();
  TRY_VOID(print_out(contract::encode_result(result) + "\n"));
  return contract::exit_code(result.outcome);
}

}  // namespace cofferdam::cli
