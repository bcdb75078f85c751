#include "image/apt.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"

namespace cofferdam::image {
namespace {

constexpr std::size_t kMaxPackage = 1U << 30U;
constexpr const char* kAptGet = "/usr/bin/apt-get";
constexpr const char* kAptCache = "/usr/bin/apt-cache";

// apt's own, where the caller has them: it may only be reached through a proxy.
std::vector<std::string> apt_environment() {
  std::vector<std::string> env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent", "LC_ALL=C.UTF-8",
                                  "DEBIAN_FRONTEND=noninteractive"};
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy", "APT_CONFIG"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread of ours sets it
    if (value != nullptr) env.push_back(fmt::format("{}={}", name, value));
  }
  return env;
}

class Apt {
 public:
  explicit Apt(std::string folder) : folder_(std::move(folder)) {}

  // Lists of our own, so that the machine's stay as they are.
  Status update() {
    TRY_VOID(make_dirs(folder_ + "/lists/partial", 0755));
    own_lists_ = true;
    TRY(const Captured done, get({"update"}, folder_));
    if (done.status.success()) return {};
    return make_error(Code::io, "apt-get update failed: " + last_line(done.err),
                      "see whether apt reaches its archive on this machine");
  }

  Result<Captured> get(std::vector<std::string> arguments, const std::string& cwd) const {
    return run(kAptGet, std::move(arguments), cwd);
  }
  Result<Captured> cache(std::vector<std::string> arguments) const {
    return run(kAptCache, std::move(arguments), "/");
  }

  static std::string last_line(const std::string& text) {
    std::string last;
    for (const std::string& line : split(text, '\n')) {
      if (starts_with(line, "E: ")) last = line.substr(3);
    }
    return printable(last.empty() ? std::string(trim(text)) : last, 500);
  }

 private:
  Result<Captured> run(const char* program, std::vector<std::string> arguments,
                       const std::string& cwd) const {
    if (!exists(program)) {
      return make_error(Code::missing_tool, fmt::format("there is no {}", program),
                        "build the image on a Debian, or take one with `cofferdam image import`");
    }
    SpawnOptions options;
    options.program = program;
    options.argv = {program,
                    "--option=Dir::Cache=" + folder_,
                    "--option=Dir::Cache::archives=" + folder_ + "/archives",
                    "--option=Dir::State::status=/dev/null",
                    "--option=Debug::NoLocking=1",
                    "--option=APT::Sandbox::User="};
    if (own_lists_) options.argv.push_back("--option=Dir::State::Lists=" + folder_ + "/lists");
    for (std::string& argument : arguments) options.argv.push_back(std::move(argument));
    options.env = apt_environment();
    options.cwd = cwd;
    return run_capture(std::move(options), {}, {});
  }

  std::string folder_;
  bool own_lists_ = false;
};

std::string word_of(const LockedPackage& package) {
  const std::string& architecture = package.architecture;
  return fmt::format("{}{}={}", package.name, architecture == "all" ? "" : ":" + architecture,
                     package.version);
}

// Names the first that the archive no longer has.
Error vanished(const Apt& apt, const std::vector<LockedPackage>& packages, const std::string& said) {
  const std::string missing = missing_package(said);
  for (const LockedPackage& package : packages) {
    if (package.name != missing) continue;
    auto policy = apt.cache({"policy", package.name});
    const std::string now = policy ? candidate_version(policy->out) : "";
    return make_error(Code::not_found,
                      fmt::format("{} {} is no longer in the archive, which {}", package.name,
                                  package.version, now.empty() ? "has no version of it" : "has " + now),
                      "`cofferdam image lock FILE` writes the list anew");
  }
  return make_error(Code::io, "apt-get download failed: " + said, "see whether apt reaches its archive");
}

Result<std::string> file_digest(const std::string& path) {
  TRY(const std::string bytes, read_file(path, kMaxPackage));
  return sha256_hex(bytes);
}

// apt names the files "NAME_VERSION_ARCH.deb", with some characters of the version escaped.
Result<std::vector<std::string>> match_files(const std::vector<LockedPackage>& packages,
                                             const std::string& folder) {
  TRY(const std::vector<std::string> names, list_dir(folder));
  std::vector<std::string> paths;
  paths.reserve(packages.size());
  for (const LockedPackage& package : packages) {
    const std::string start = package.name + "_";
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return starts_with(name, start) && name.size() > 4 && name.compare(name.size() - 4, 4, ".deb") == 0;
    });
    if (found == names.end()) return make_error(Code::io, "apt did not download " + package.name);
    std::string path = folder;
    path.append("/").append(*found);
    TRY(const std::string digest, file_digest(path));
    if (digest != package.sha256) {
      return make_error(
          Code::denied,
          fmt::format("{} {} is another file than the one in the list", package.name, package.version),
          "do not use it: the archive, or what stands before it, gives out something else");
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

// The value of a "Name: value" line.
std::string field(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    const std::string_view trimmed = trim(line);
    if (starts_with(trimmed, name)) return std::string(trim(trimmed.substr(name.size())));
  }
  return {};
}

}  // namespace

std::vector<LockedPackage> simulated(std::string_view output) {
  std::vector<LockedPackage> packages;
  for (const std::string& line : split(output, '\n')) {
    const std::size_t open = line.find(" (");
    const std::size_t close = line.find("])", open == std::string::npos ? 0 : open);
    if (!starts_with(line, "Inst ") || open == std::string::npos || close == std::string::npos) continue;
    const std::size_t bracket = line.rfind('[', close);
    const std::size_t space = line.find(' ', open + 2);
    if (bracket == std::string::npos || space == std::string::npos || space > bracket) continue;
    packages.push_back({line.substr(5, open - 5), line.substr(open + 2, space - open - 2),
                        line.substr(bracket + 1, close - bracket - 1), ""});
  }
  return packages;
}

std::string shown_digest(std::string_view output, const LockedPackage& package) {
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find("\n\n", at), output.size());
    const std::string_view paragraph = output.substr(at, end - at);
    if (field(paragraph, "Package:") == package.name && field(paragraph, "Version:") == package.version)
      return field(paragraph, "SHA256:");
    at = end + 2;
  }
  return {};
}

std::string missing_package(std::string_view said) {
  // "Version '1' for 'NAME' was not found"; for a foreign name 'NAME:ARCH'.
  const std::vector<std::string> quoted = split(said, '\'');
  if (quoted.size() >= 5 && trim(quoted[2]) == "for") return quoted[3].substr(0, quoted[3].find(':'));
  constexpr std::string_view kUnknown = "Unable to locate package ";
  const std::size_t at = said.find(kUnknown);
  if (at == std::string_view::npos) return {};
  const std::string name(trim(said.substr(at + kUnknown.size())));
  return name.substr(0, name.find_first_of(":= \n"));
}

std::string candidate_version(std::string_view output) {
  std::string version = field(output, "Candidate:");
  return version == "(none)" ? "" : version;
}

Result<std::vector<std::string>> download_packages(const std::vector<LockedPackage>& packages,
                                                   const std::string& folder) {
  const std::string files = folder + "/files";
  TRY_VOID(make_new_dir(files));
  TRY_VOID(make_dirs(folder + "/archives/partial"));
  std::vector<std::string> words = {"download"};
  for (const LockedPackage& package : packages) words.push_back(word_of(package));
  Apt apt(folder);
  TRY(Captured done, apt.get(words, files));
  if (!done.status.success()) {
    TRY_VOID(apt.update());
    TRY(done, apt.get(std::move(words), files));
  }
  if (!done.status.success()) return vanished(apt, packages, Apt::last_line(done.err));
  return match_files(packages, files);
}

Result<std::vector<LockedPackage>> resolve_packages(const LockFile& lock, const std::string& folder) {
  Apt apt(folder);
  TRY_VOID(make_dirs(folder + "/archives/partial"));
  TRY_VOID(apt.update());
  std::vector<std::string> words = {"--simulate", "--no-install-recommends", "install"};
  words.insert(words.end(), lock.wanted.begin(), lock.wanted.end());
  TRY(const Captured planned, apt.get(std::move(words), "/"));
  if (!planned.status.success())
    return make_error(Code::not_found, "apt cannot resolve the list: " + Apt::last_line(planned.err));
  std::vector<LockedPackage> packages;
  words = {"show"};
  for (LockedPackage& one : simulated(planned.out)) {
    if (std::find(lock.without.begin(), lock.without.end(), one.name) != lock.without.end()) continue;
    words.push_back(word_of(one));
    packages.push_back(std::move(one));
  }
  TRY(const Captured shown, apt.cache(std::move(words)));
  for (LockedPackage& one : packages) {
    one.sha256 = shown_digest(shown.out, one);
    if (one.sha256.empty()) return make_error(Code::io, "apt does not know the digest of " + one.name);
  }
  std::sort(packages.begin(), packages.end(),
            [](const LockedPackage& left, const LockedPackage& right) { return left.name < right.name; });
  return packages;
}

}  // namespace cofferdam::image
