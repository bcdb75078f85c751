#include "support/random_edits.h"

#include <array>
#include <random>

namespace cofferdam::test {
namespace {

class Script {
 public:
  explicit Script(unsigned seed) : random_(seed) {}

  void put(const std::string& path) {
    line("if [ ! -d " + path + " ] || [ -L " + path + " ]; then mkdir -p " + folder_of(path) +
         " 2>/dev/null && rm -f " + path + " && printf '" + content() + "' > " + path + " || :; fi");
  }
  void step() {
    const std::string one = path();
    const std::string two = path();
    switch (pick(13)) {
      case 0:
      case 1:
        return put(one);
      case 2:
        return line("if [ -f " + one + " ]; then printf '" + content() + "' >> " + one + "; fi");
      case 3:
        // The stat data say that nothing happened.
        return line("if [ -f " + one + " ] && [ ! -L " + one + " ]; then touch -r " + one +
                    " ref; tr a-y b-z < " + one + " > tmp; cat tmp > " + one + "; touch -r ref " + one +
                    "; rm ref tmp; fi");
      case 4:
        return line("rm -f " + one + " 2>/dev/null || :");
      case 5:
        return line("rm -rf " + folder());
      case 6:
        return line("if [ -f " + one + " ] && mkdir -p " + folder_of(two) + " 2>/dev/null && [ ! -d " + two +
                    " ]; then mv -f " + one + " " + two + "; fi");
      case 7: {
        const std::string from = folder();
        const std::string to = "moved" + std::to_string(pick(4));
        return line("if [ -d " + from + " ] && [ ! -e " + to + " ]; then mv " + from + " " + to + "; fi");
      }
      case 8:
        return line("if [ -f " + one + " ] && [ ! -L " + one + " ]; then chmod " +
                    (pick(2) == 0 ? "+x " : "-x ") + one + "; fi");
      case 9:
        return line("if [ ! -d " + one + " ] || [ -L " + one + " ]; then mkdir -p " + folder_of(one) +
                    " 2>/dev/null && rm -f " + one + " && ln -s " + two + " " + one + " || :; fi");
      case 10:
        return line("mkdir -p " + folder() + "/empty 2>/dev/null || :");
      case 11:
        return line("if [ -f " + one + " ]; then rm -f " + one + "; mkdir " + one + "; printf '" + content() +
                    "' > " + one + "/inner; fi");
      default: {
        const std::string where = folder();
        return line("if [ -d " + where + " ] && [ ! -L " + where + " ]; then rm -rf " + where + "; printf '" +
                    content() + "' > " + where + "; fi");
      }
    }
  }
  void line(const std::string& text) { script_.append(text).push_back('\n'); }
  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  std::string take() { return std::move(script_); }

 private:
  std::string folder() {
    static constexpr std::array kFolders = {"d0",    "d0/d1", "d0/d1/d2", "d3",
                                            "d3/d4", "'d 5'", "'d 5'/d6", "d7"};
    return kFolders[pick(kFolders.size())];
  }
  std::string path() {
    static constexpr std::array kNames = {"a.txt", "b.txt", "c.crlf", "e.auto",
                                          "f.bin", "'g h'", "i.sh",   "'j\"k'"};
    const std::string name = kNames[pick(kNames.size())];
    if (pick(4) == 0) return name;
    return folder().append("/").append(name);
  }
  static std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
  }
  std::string content() {
    static constexpr std::array kPieces = {"alpha\\n", "beta\\r\\n", "\\000\\377",
                                           "gamma",    "\\n",        "delta delta\\n"};
    std::string out;
    for (std::size_t left = pick(6); left > 0; --left) out += kPieces[pick(kPieces.size())];
    return out;
  }

  std::mt19937 random_;
  std::string script_;
};

}  // namespace

std::string random_tree(unsigned seed) {
  Script script(seed);
  if (script.pick(2) == 0) {
    script.line("printf '*.crlf text eol=crlf\\n*.auto text=auto\\n*.bin -text\\n' > .gitattributes");
  }
  script.line("printf 'moved3/\\n' > .gitignore");
  for (int i = 0; i < 40; ++i)
    script.put(script.pick(2) == 0 ? "keep" + std::to_string(i) : "d0/k" + std::to_string(i));
  for (int i = 0; i < 40; ++i) script.step();
  return script.take();
}

std::string random_edits(unsigned seed, unsigned count) {
  Script script(seed * 2654435761U + 1U);
  for (unsigned i = 0; i < count; ++i) script.step();
  return script.take();
}

}  // namespace cofferdam::test
