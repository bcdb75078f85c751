// Runs one target over the files of some folders, in the ordinary build: `fuzz_replay TARGET FOLDER...`.
// Every input also runs cut off at each of a few places, and with bytes turned over.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "fuzz/targets.h"

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void run_variants(const cofferdam::fuzz::Target& target, const std::string& input) {
  target.run(input);
  constexpr std::size_t kSteps = 16;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const std::size_t at = input.size() * step / kSteps;
    target.run(std::string_view(input).substr(0, at));
    std::string turned = input;
    if (at < turned.size())
      turned[at] = static_cast<char>(static_cast<unsigned char>(turned[at]) ^ (1U << (step % 8)));
    target.run(turned);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto& targets = cofferdam::fuzz::targets();
  const std::string name = argc > 1 ? argv[1] : "";
  auto target =
      std::find_if(targets.begin(), targets.end(), [&](const auto& one) { return one.name == name; });
  if (target == targets.end()) {
    std::fprintf(stderr, "no such target: %s\n", name.c_str());
    return 2;
  }
  std::size_t inputs = 0;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      run_variants(*target, contents(entry.path()));
      ++inputs;
    }
  }
  std::printf("%s: %zu inputs\n", name.c_str(), inputs);
  return inputs > 0 ? 0 : 1;  // an empty corpus proves nothing
}
