// libFuzzer's entry for one target: compiled once per target, with its name.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto& target : cofferdam::fuzz::targets()) {
    if (target.name == COFFERDAM_FUZZ_TARGET) target.run(bytes);
  }
  return 0;
}
