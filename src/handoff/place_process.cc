#include "handoff/place_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::handoff {
namespace {

using contract::Json;
using contract::ObjectReader;

constexpr int kPlanFd = 3;
constexpr int kContentFd = 4;
constexpr std::size_t kMaxPlan = 512U << 20U;
constexpr std::size_t kMaxAnswer = 256U << 20U;
constexpr std::size_t kMaxObstacles = 200'000;
constexpr std::size_t kMaxText = 16U << 10U;

constexpr std::array kCodes = {Code::usage,   Code::config,   Code::missing_tool, Code::unsupported_host,
                               Code::denied,  Code::conflict, Code::not_found,    Code::exhausted,
                               Code::timeout, Code::io,       Code::protocol,     Code::internal};

std::vector<std::string> code_names() {
  std::vector<std::string> names;
  names.reserve(kCodes.size());
  for (const Code code : kCodes) names.emplace_back(code_name(code));
  return names;
}

// An answer is what was found, what was mended, or an error. Paths are one-line text by now: for people.
struct Answer {
  std::vector<Obstacle> obstacles;
  std::string mended;
  std::optional<Error> error;
};

std::string encode_answer(const Answer& answer) {
  Json found = Json::array();
  for (const Obstacle& one : answer.obstacles) {
    found.push_back({{"kind", one.kind},
                     {"path", contract::json_text(one.path, kMaxText)},
                     {"detail", contract::json_text(one.detail, kMaxText)}});
  }
  Json error = nullptr;
  if (answer.error) {
    error = {{"code", code_name(answer.error->code)},
             {"what", contract::json_text(answer.error->what, kMaxText)},
             {"hint", contract::json_text(answer.error->hint, kMaxText)}};
  }
  return contract::canonical(
      {{"obstacles", found}, {"mended", contract::json_text(answer.mended, kMaxText)}, {"error", error}});
}

Result<Answer> decode_answer(std::string_view text) {
  TRY(const Json document, contract::parse_json(text, kMaxAnswer));
  contract::JsonFault fault;
  ObjectReader in(document, "$", &fault);
  Answer answer;
  for (ObjectReader& one : in.objects("obstacles", 0, kMaxObstacles)) {
    Obstacle obstacle;
    obstacle.kind = one.text("kind", {1, 64});
    obstacle.path = one.text("path", {0, kMaxText});
    obstacle.detail = one.text("detail", {0, kMaxText});
    one.finish();
    answer.obstacles.push_back(std::move(obstacle));
  }
  answer.mended = in.text("mended", {0, kMaxText});
  if (auto error = in.maybe_object("error", contract::Absent::only_null)) {
    Error read;
    read.code = kCodes[error->choice("code", code_names())];
    read.what = error->text("what", {0, kMaxText});
    read.hint = error->text("hint", {0, kMaxText});
    error->finish();
    answer.error = std::move(read);
  }
  in.finish();
  if (fault.failed()) return fault.error();
  return answer;
}

Result<Answer> ask(const std::string& program, const std::string& plan, int content_fd,
                   const std::optional<UserIds>& run_as) {
  // The owner may not be able to walk to our program, so it is opened here.
  TRY(const UniqueFd self, open_file(program, O_PATH));
  TRY(const UniqueFd plan_fd, make_sealed_memfd("cofferdam-plan", plan));
  SpawnOptions options;
  options.program = program;
  options.program_fd = self.get();
  options.argv = {"cofferdam", "internal-place"};
  options.run_as = run_as;
  options.die_with_parent = false;
  options.fds.push_back({plan_fd.get(), kPlanFd});
  if (content_fd >= 0) options.fds.push_back({content_fd, kContentFd});
  TRY(const Captured done, run_capture(std::move(options), "", {kMaxAnswer, std::chrono::minutes(60)}));
  auto answer = decode_answer(done.out);
  if (!answer) {
    return make_error(Code::internal, "the process that applies ended with " + done.status.describe() + " " +
                                          printable(trim(done.err), 300));
  }
  if (answer->error) return *std::move(answer->error);
  return answer;
}

Answer work() {
  Answer answer;
  auto plan = read_to_end(kPlanFd, kMaxPlan);
  if (!plan) return answer.error = std::move(plan).error(), answer;
  if (starts_with(*plan, "mend:")) {
    auto mended = mend(plan->substr(5));
    if (mended) {
      answer.mended = *std::move(mended);
    } else {
      answer.error = std::move(mended).error();
    }
    return answer;
  }
  auto placement = decode_placement(*plan);
  if (!placement) return answer.error = std::move(placement).error(), answer;
  auto placed = place(*placement, kContentFd);
  if (placed) {
    answer.obstacles = *std::move(placed);
  } else {
    answer.error = std::move(placed).error();
  }
  return answer;
}

}  // namespace

Result<std::vector<Obstacle>> place_apart(const std::string& program, const Placement& placement,
                                          int content_fd, const std::optional<UserIds>& run_as) {
  TRY(Answer answer, ask(program, encode_placement(placement), content_fd, run_as));
  return std::move(answer.obstacles);
}

Result<std::string> mend_apart(const std::string& program, const std::string& git_dir,
                               const std::optional<UserIds>& run_as) {
  TRY(Answer answer, ask(program, "mend:" + git_dir, -1, run_as));
  return std::move(answer.mended);
}

Result<int> place_main() {
  const Answer answer = work();
  TRY_VOID(write_all(STDOUT_FILENO, encode_answer(answer)));
  return 0;
}

}  // namespace cofferdam::handoff
