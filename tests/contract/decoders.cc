#include "contract/decoders.h"

#include "base/file.h"
#include "contract/event.h"
#include "contract/invocation.h"
#include "contract/plan_answer.h"
#include "contract/result.h"

namespace cofferdam::testing {
namespace {

template <auto decode>
Status verdict(std::string_view json) {
  auto decoded = decode(json);
  if (!decoded) return std::move(decoded).error();
  return {};
}

Result<std::string> reencode_invocation(std::string_view json) {
  TRY(auto decoded, contract::decode_invocation(json));
  return decoded.canonical();
}
Result<std::string> reencode_event(std::string_view json) {
  TRY(auto decoded, contract::decode_event(json));
  return contract::encode_event(decoded);
}
Result<std::string> reencode_result(std::string_view json) {
  TRY(auto decoded, contract::decode_result(json));
  return contract::encode_result(decoded);
}
Result<std::string> no_encoder(std::string_view json) {
  TRY(auto decoded, contract::decode_plan_answer(json));
  return std::string();
}

}  // namespace

const std::vector<Decoder>& decoders() {
  static const std::vector<Decoder> kDecoders{
      {"invocation", verdict<contract::decode_invocation>, reencode_invocation},
      {"event", verdict<contract::decode_event>, reencode_event},
      {"result", verdict<contract::decode_result>, reencode_result},
      {"plan-answer", verdict<contract::decode_plan_answer>, no_encoder},
  };
  return kDecoders;
}

Result<std::vector<Fixture>> read_fixtures(const std::string& root, const std::string& kind, bool valid) {
  const std::string folder = kind + (valid ? "/valid/" : "/invalid/");
  TRY(std::vector<std::string> names, list_dir(root + "/" + folder));
  std::vector<Fixture> out;
  for (const std::string& name : names) {
    TRY(std::string bytes, read_file(root + "/" + folder + name, 16U << 20U));
    out.push_back({folder + name, std::move(bytes)});
  }
  return out;
}

}  // namespace cofferdam::testing
