#include "handoff/snapshot.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.h"
#include "handoff/box_profile.h"
#include "handoff/record.h"
#include "handoff/snapshot_script.h"

namespace cofferdam::handoff {
namespace {

constexpr std::size_t kMaxFindings = 200;
constexpr std::size_t kMaxIgnored = 200;
constexpr std::array kRules = {"nested-git", "special-file", "unreadable", "set-id",
                               "hard-link",  "gitlink",      "driver",     "unsafe-name"};

Result<contract::Finding> decode_finding(RecordReader* reader) {
  TRY_VOID(reader->literal("finding"));
  TRY(std::string_view rule, reader->text());
  TRY(std::string_view action, reader->text());
  TRY(std::string_view path, reader->text());
  if (std::find(kRules.begin(), kRules.end(), rule) == kRules.end()) return reader->broken("unknown rule");
  if (action != "dropped" && action != "reported") return reader->broken("unknown action");
  if (starts_with(path, "./")) path.remove_prefix(2);  // as find(1) prints it
  if (path.empty()) return reader->broken("a finding without a path");
  return contract::Finding{std::string(rule), std::string(path), std::string(action)};
}

}  // namespace

std::vector<std::string> snapshot_argv(const SnapshotInput& input, const ScriptPaths& paths) {
  return {"/bin/sh",
          "-c",
          kSnapshotScript,
          "snapshot",
          paths.work,
          paths.metadata,
          paths.output,
          paths.scratch,
          input.base_tree,
          std::to_string(input.max_file_bytes),
          input.overlay ? paths.upper : ""};
}

contract::Profile snapshot_profile(const SnapshotInput& input) {
  contract::Profile profile = box_profile("snapshot", snapshot_argv(input, ScriptPaths{}), input);
  profile.work = contract::Access::read_only;
  profile.output = contract::Access::read_write;
  if (input.overlay) profile.upper = contract::Access::read_only;
  if (input.stdout_fd >= 0) profile.fds.push_back({input.stdout_fd, 1});
  if (input.stderr_fd >= 0) profile.fds.push_back({input.stderr_fd, 2});
  return profile;
}

Result<Snapshot> decode_snapshot(std::string_view bytes) {
  RecordReader reader(bytes, "snapshot");
  if (bytes.size() > kMaxSnapshotRecord) return reader.broken("the record is too long");
  TRY_VOID(reader.literal("cofferdam-snapshot/1"));
  TRY_VOID(check_refusal(&reader));
  Snapshot snapshot;
  TRY_VOID(reader.literal("tree"));
  TRY(snapshot.tree, reader.object_id());
  TRY_VOID(reader.literal("objects"));
  TRY(snapshot.objects, reader.number());
  TRY_VOID(reader.literal("ignored"));
  TRY(snapshot.ignored_files, reader.number());
  while (reader.next_is("path")) {
    if (snapshot.ignored.size() == kMaxIgnored) return reader.broken("too many ignored files");
    TRY_VOID(reader.literal("path"));
    TRY(const std::string_view path, reader.text());
    snapshot.ignored.emplace_back(path);
  }
  while (reader.next_is("finding")) {
    if (snapshot.findings.size() == kMaxFindings) return reader.broken("too many findings");
    TRY(contract::Finding finding, decode_finding(&reader));
    snapshot.findings.push_back(std::move(finding));
  }
  TRY_VOID(reader.literal("more"));
  TRY(snapshot.more_findings, reader.number());
  TRY_VOID(reader.end());
  // The order of a folder's entries is the file system's: an account must not depend on it.
  std::sort(snapshot.findings.begin(), snapshot.findings.end(), [](const auto& a, const auto& b) {
    return std::tie(a.path, a.rule, a.action) < std::tie(b.path, b.rule, b.action);
  });
  return snapshot;
}

}  // namespace cofferdam::handoff
