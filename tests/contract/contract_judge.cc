// contract-judge FIXTURES OUT: writes mutants of the valid fixtures to OUT/mutants/KIND.ndjson, and what the
// decoders say of every fixture and mutant to OUT/decoder.txt, one line each:
//   fixtures/invocation/valid/claude-minimal.json accept
//   mutants/invocation.ndjson:17 refuse
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/file.h"
#include "contract/decoders.h"

namespace cofferdam::testing {
namespace {

// Documents that together hold every key; the mutants of all would take the judges minutes.
constexpr std::array<const char*, 7> kMutated{"invocation/valid/claude-full.json",
                                              "invocation/valid/codex-full.json",
                                              "invocation/valid/command-with-egress.json",
                                              "event/valid/nested-data.json",
                                              "result/valid/completed.json",
                                              "result/valid/cancelled.json",
                                              "plan-answer/valid/typical.json"};
constexpr std::size_t kPairs = 150;

bool is_mutated(const Fixture& fixture) {
  return std::find(kMutated.begin(), kMutated.end(), fixture.name) != kMutated.end();
}

void add_verdict(const std::string& name, const Status& verdict, std::string* report) {
  report->append(name).append(verdict ? " accept\n" : " refuse\n");
}

Status judge(const Decoder& decoder, const std::string& fixtures, const std::string& out,
             std::string* report) {
  std::string lines;
  std::size_t line = 0;
  for (bool valid : {true, false}) {
    TRY(std::vector<Fixture> found, read_fixtures(fixtures, decoder.kind, valid));
    for (const Fixture& fixture : found) {
      add_verdict("fixtures/" + fixture.name, decoder.accept(fixture.bytes), report);
      if (!is_mutated(fixture)) continue;
      for (const std::string& mutant : mutants(fixture.bytes, kPairs)) {
        const std::string name = std::string("mutants/") + decoder.kind + ".ndjson:" + std::to_string(++line);
        add_verdict(name, decoder.accept(mutant), report);
        lines += mutant + "\n";
      }
    }
  }
  return write_file_atomic(out + "/mutants/" + decoder.kind + ".ndjson", lines, 0644);
}

Status judge_all(const std::string& fixtures, const std::string& out) {
  TRY_VOID(make_dirs(out + "/mutants"));
  std::string report;
  for (const Decoder& decoder : decoders()) TRY_VOID(judge(decoder, fixtures, out, &report));
  return write_file_atomic(out + "/decoder.txt", report, 0644);
}

}  // namespace
}  // namespace cofferdam::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: contract-judge FIXTURES OUT\n", stderr);
    return 2;
  }
  if (auto done = cofferdam::testing::judge_all(argv[1], argv[2]); !done) {
    std::fprintf(stderr, "contract-judge: %s\n", done.error().line().c_str());
    return 1;
  }
  return 0;
}
