#include "image/agents.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "contract/json.h"
#include "image/store.h"
#include "image/tree.h"

namespace cofferdam::image {
namespace {

constexpr const char* kModules = "/node_modules/";
constexpr std::size_t kMaxRecord = 16U << 20U;

Status copy_file(const std::string& from, const std::string& to, mode_t mode) {
  TRY(const UniqueFd in, open_file(from, O_RDONLY | O_NOFOLLOW));
  TRY(const UniqueFd out, open_file(to, O_WRONLY | O_CREAT | O_EXCL));
  while (true) {
    constexpr std::size_t kChunk = 1U << 30U;
    const ssize_t n = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, kChunk, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
      while (true) {
        bool would_block = false;
        TRY(const std::string block, read_some(in.get(), 1U << 20U, &would_block));
        if (block.empty()) break;
        TRY_VOID(write_all(out.get(), block));
      }
      break;
    }
    if (n < 0) return sys_error("cannot copy " + from, errno);
    if (n == 0) break;
  }
  if (::fchmod(out.get(), mode) != 0) return sys_error("chmod " + to, errno);
  return {};
}

// The modes are those of every file of an image (stream.h).
Status copy_tree(const std::string& from, const std::string& to, std::size_t depth) {
  if (depth > kMaxDepth) return make_error(Code::protocol, "too deep: " + from);
  TRY_VOID(make_new_dir(to, 0755));
  if (::chmod(to.c_str(), 0755) != 0) return sys_error("chmod " + to, errno);
  TRY(const std::vector<std::string> names, list_dir(from));
  for (const std::string& name : names) {
    std::string source = from;
    source.append("/").append(name);
    std::string target = to;
    target.append("/").append(name);
    struct stat info {};
    if (::lstat(source.c_str(), &info) != 0) return sys_error("cannot look at " + source, errno);
    if (S_ISDIR(info.st_mode)) {
      TRY_VOID(copy_tree(source, target, depth + 1));
    } else if (S_ISREG(info.st_mode)) {
      TRY_VOID(copy_file(source, target, (info.st_mode & 0111U) != 0 ? 0755 : 0644));
    } else {
      return make_error(Code::denied, source + " is no file of an npm package");
    }
  }
  return {};
}

// The folders on the way from `top`, which is there, to `path`.
Status make_parents(const std::string& top, const std::string& path) {
  for (std::size_t at = path.find('/', top.size() + 1); at != std::string::npos;
       at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    TRY_VOID(make_dirs(folder, 0755));
    if (::chmod(folder.c_str(), 0755) != 0) return sys_error("chmod " + folder, errno);
  }
  return {};
}

Result<std::string> copy_and_digest(const std::string& agents_dir, const std::string& name,
                                    const std::string& tree, const char* place) {
  const std::string from = agents_dir + kModules + name;
  if (!is_directory(from)) {
    return make_error(Code::missing_tool,
                      fmt::format("the agent {} is not installed in {}", name, agents_dir),
                      "run `npm ci --ignore-scripts` there");
  }
  const std::string to = tree + place + kModules + name;
  TRY_VOID(make_parents(tree, to));
  TRY_VOID(copy_tree(from, to, 0));
  TRY(const std::string manifest, manifest_of(to));
  return sha256_hex(manifest);
}

}  // namespace

Status copy_agent(const std::string& agents_dir, const LockedAgent& agent, const std::string& tree) {
  TRY(const std::string digest, copy_and_digest(agents_dir, agent.name, tree, kAgentsInImage));
  if (digest == agent.sha256) return {};
  return make_error(
      Code::denied,
      fmt::format("the agent {} in {} is not the version {} of the list", agent.name, agents_dir,
                  agent.version),
      "run `npm ci --ignore-scripts` there, or write the list anew with `cofferdam image lock FILE`");
}

Result<std::vector<LockedAgent>> resolve_agents(const std::vector<std::string>& names,
                                                const std::string& agents_dir, const std::string& scratch) {
  std::vector<LockedAgent> agents;
  if (names.empty()) return agents;
  agents.reserve(names.size());
  const std::string record = agents_dir + "/node_modules/.package-lock.json";
  TRY(const std::string text, read_file(record, kMaxRecord));
  TRY(const contract::Json json, contract::parse_json(text, kMaxRecord));
  for (const std::string& name : names) {
    contract::JsonFault fault;
    const contract::ObjectReader packages = contract::ObjectReader(json, "$", &fault).object("packages");
    contract::ObjectReader entry = contract::ObjectReader(packages).object(("node_modules/" + name).c_str());
    LockedAgent agent{name, entry.text("version", {1, 100}), entry.text("integrity", {1, 300}), ""};
    if (fault.failed()) return fault.error().with(record);
    TRY(agent.sha256, copy_and_digest(agents_dir, name, scratch, ""));
    agents.push_back(std::move(agent));
  }
  return agents;
}

}  // namespace cofferdam::image
