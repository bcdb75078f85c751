#include "cli/record_json.h"

#include "base/text.h"
#include "contract/json.h"
#include "contract/result_shape.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kReplacementBytes = 3;  // U+FFFD in UTF-8, in the place of one byte

contract::Json id_or_null(const std::string& id) {
  return id.empty() ? contract::Json(nullptr) : contract::json_text(id, contract::kMaxNameBytes);
}

}  // namespace

std::string diff_json(const contract::ResultRecord& result, std::string_view patch) {
  const contract::ChangeFacts& change = result.change;
  contract::Json files = contract::Json::array();
  for (const contract::ChangedFile& file : change.files) {
    files.push_back({{"path", contract::json_text(file.path, contract::kMaxChangedPathBytes)},
                     {"status", contract::json_text(file.status, contract::kMaxNameBytes)}});
  }
  const contract::Json out = {
      {"attempt_id", contract::json_text(result.attempt_id, contract::kMaxNameBytes)},
      {"base", id_or_null(change.base)},
      {"commit", id_or_null(change.commit.value_or(""))},
      {"files", files},
      {"file_count", contract::json_count(change.file_count)},
      {"patch", contract::json_text(patch, patch.size() * kReplacementBytes)},
  };
  return contract::canonical(out) + "\n";
}

std::string cancel_json(const std::string& attempt_id) {
  const contract::Json out = {{"attempt_id", attempt_id}, {"accepted", true}};
  return contract::canonical(out) + "\n";
}

std::string checkpoint_json(const std::string& attempt_id, const std::string& commit,
                            const std::string& tree) {
  const contract::Json out = {
      {"attempt_id", attempt_id}, {"commit", id_or_null(commit)}, {"tree", id_or_null(tree)}};
  return contract::canonical(out) + "\n";
}

std::string diff_text(const std::string& patch, bool to_terminal) {
  return to_terminal ? printable(patch, patch.size() * kReplacementBytes) : patch;
}

}  // namespace cofferdam::cli
