#include "sandbox/native/elf_needs.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::uint64_t kMaxTable = 1U << 20U;
constexpr std::size_t kMaxFiles = 1024;  // of a box's root
constexpr std::size_t kMaxSeen = 100'000;
constexpr std::size_t kMaxNeeded = 256;
constexpr std::size_t kMaxPaths = 64;
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";  // of the x86-64 psABI with glibc

// The loader's own places on Debian, then those of other distributions (ld.so(8)). The box has no cache.
constexpr std::array kLibraryFolders = {
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

// A whole range of a file, or nothing.
std::string read_at(int fd, std::uint64_t offset, std::uint64_t size) {
  if (size > kMaxTable || offset > INT64_MAX - kMaxTable) return {};
  std::string out(size, '\0');
  const ssize_t n = ::pread(fd, out.data(), size, static_cast<off_t>(offset));
  return n == static_cast<ssize_t>(size) ? out : std::string();
}

template <typename T>
std::vector<T> read_table(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const std::string raw = read_at(fd, offset, bytes - bytes % sizeof(T));
  std::vector<T> out(raw.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), raw.data(), raw.size());
  return out;
}

// Where the file has what is at this address in memory.
std::uint64_t offset_of(const std::vector<Elf64_Phdr>& headers, std::uint64_t address) {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
      return header.p_offset + (address - header.p_vaddr);
  }
  return UINT64_MAX;
}

std::string string_at(int fd, std::uint64_t table, std::uint64_t size, std::uint64_t offset) {
  if (offset >= size || table == UINT64_MAX) return {};
  const std::string text = read_at(fd, table + offset, std::min<std::uint64_t>(size - offset, PATH_MAX));
  const std::size_t end = text.find('\0');
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

void read_dynamic(int fd, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& dynamic, ElfFacts* out) {
  const auto entries = read_table<Elf64_Dyn>(fd, dynamic.p_offset, dynamic.p_filesz);
  std::uint64_t table = UINT64_MAX;
  std::uint64_t size = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) table = offset_of(headers, entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    const bool needed = entry.d_tag == DT_NEEDED;
    if (!needed && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
    const std::string text = string_at(fd, table, size, entry.d_un.d_val);
    if (needed) {
      out->needed.push_back(text);
    } else {
      for (std::string& folder : split(text, ':')) out->paths.push_back(std::move(folder));
    }
    // A file that names more than this is made to be expensive.
    out->excessive = out->needed.size() > kMaxNeeded || out->paths.size() > kMaxPaths;
    if (out->excessive) return;
  }
}

// A path of the root `root` (the host's, or an image's), its links followed inside of it alone.
Result<std::string> real_path(const std::string& root, const std::string& path) {
  UniqueFd top(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) return sys_error(root, errno);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  UniqueFd file(static_cast<int>(::syscall(SYS_openat2, top.get(), path.c_str(), &how, sizeof how)));
  if (!file.valid()) return sys_error(path, errno);
  // Before anybody opens it to read: a folder would bring all that is in it, and a device could act.
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return make_error(Code::denied, printable(path, 200) + " is no regular file");
  }
  std::array<char, PATH_MAX> real{};
  const std::string link = fmt::format("/proc/self/fd/{}", file.get());
  const ssize_t size = ::readlink(link.c_str(), real.data(), real.size());
  const std::string text(real.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string prefix = root == "/" ? "" : root;
  if (!starts_with(text, prefix + "/")) return make_error(Code::io, path + " cannot be found again");
  return text.substr(prefix.size());
}

// What is found on the way from programs to all that they need.
class Closure {
 public:
  Closure(std::string root, std::string agent_dir)
      : root_(std::move(root)), agent_dir_(std::move(agent_dir)) {}

  // A file that the box has at `target`.
  Status add(const std::string& source, const std::string& target, bool execute) {
    auto known = std::find_if(files_.begin(), files_.end(),
                              [&target](const ProgramFile& file) { return file.target == target; });
    if (known != files_.end()) {
      known->execute = known->execute || execute;
      return {};
    }
    if (files_.size() >= kMaxFiles) return make_error(Code::exhausted, "a program needs too many libraries");
    TRY(std::string real, real_path(root_, source));
    files_.push_back({real, target, execute});
    return look(host_path(real), target);
  }

  Status look(const std::string& path, const std::string& target) {
    TRY(ElfFacts facts, read_elf(path));
    if (!facts.elf) return {};
    if (facts.excessive) {
      return make_error(Code::denied, target + " names too many libraries or folders of libraries",
                        "use --shell sandboxed");
    }
    // Any other would be a file of the host's that whoever made the program has chosen.
    if (!facts.interpreter.empty() && facts.interpreter != kLoader) {
      return make_error(Code::denied,
                        fmt::format("{} wants to be loaded by {}, not by {}", target,
                                    printable(facts.interpreter, 200), kLoader),
                        "use --shell sandboxed");
    }
    if (!facts.interpreter.empty()) TRY_VOID(add(facts.interpreter, facts.interpreter, true));
    for (const std::string& name : facts.needed) TRY_VOID(add_library(name, facts, target));
    return {};
  }

  std::vector<ProgramFile> take() { return std::move(files_); }

 private:
  std::string host_path(const std::string& path) const { return root_ == "/" ? path : root_ + path; }

  Status add_library(const std::string& name, const ElfFacts& facts, const std::string& needs) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      return make_error(Code::denied, fmt::format("{} needs the library \"{}\"", needs, printable(name, 80)),
                        "only libraries by their plain names can be found for a box without a shell");
    const std::string origin = needs.substr(0, needs.rfind('/'));
    for (std::string folder : facts.paths) {
      for (const char* word : {"$ORIGIN", "${ORIGIN}"}) {
        if (starts_with(folder, word)) folder.replace(0, std::strlen(word), origin);
      }
      // What is in the agent's own folder comes with it.
      if (starts_with(folder, "/opt/agent") && exists(agent_dir_ + folder.substr(10) + "/" + name)) return {};
    }
    for (const char* folder : kLibraryFolders) {
      const std::string path = std::string(folder) + "/" + name;
      if (real_path(root_, path)) return add(path, path, false);
    }
    return make_error(Code::missing_tool, fmt::format("{} needs {}, which is not there", needs, name),
                      "install that library, or use --shell sandboxed");
  }

  std::string root_;  // where the paths of files are found
  std::string agent_dir_;
  std::vector<ProgramFile> files_;
};

// Every file of the agent's folder that is an ELF.
Status look_at_folder(const std::string& folder, Closure* closure) {
  std::error_code failed;
  std::size_t seen = 0;
  auto it = std::filesystem::recursive_directory_iterator(folder, failed);
  for (; !failed && it != std::filesystem::recursive_directory_iterator(); it.increment(failed)) {
    if (++seen > kMaxSeen) return make_error(Code::exhausted, folder + " holds too many files");
    std::error_code unknown;
    if (!it->is_regular_file(unknown) || it->is_symlink(unknown)) continue;
    const std::string path = it->path().string();
    TRY_VOID(closure->look(path, "/opt/agent" + path.substr(folder.size())));
  }
  if (failed) return make_error(Code::io, folder + ": " + failed.message());
  return {};
}

}  // namespace

Result<ElfFacts> read_elf(const std::string& path) {
  // Not blocked by a FIFO, and no terminal of ours.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return sys_error(path, errno);
  ElfFacts out;
  const auto start = read_table<Elf64_Ehdr>(file.get(), 0, sizeof(Elf64_Ehdr));
  if (start.empty()) return out;
  const Elf64_Ehdr& head = start.front();
  const bool kind = head.e_type == ET_EXEC || head.e_type == ET_DYN;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 || !kind ||
      head.e_machine != EM_X86_64 || head.e_phentsize != sizeof(Elf64_Phdr)) {
    return out;
  }
  out.elf = true;
  const auto headers =
      read_table<Elf64_Phdr>(file.get(), head.e_phoff, std::uint64_t{head.e_phnum} * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_INTERP)
      out.interpreter = string_at(file.get(), header.p_offset, header.p_filesz, 0);
    if (header.p_type == PT_DYNAMIC) read_dynamic(file.get(), headers, header, &out);
  }
  return out;
}

Result<std::vector<ProgramFile>> program_files(const contract::Profile& profile) {
  const std::string root = profile.image.has_value() ? profile.image->tree : "/";
  Closure closure(root, profile.agent_dir);
  if (!profile.agent_dir.empty()) TRY_VOID(look_at_folder(profile.agent_dir, &closure));
  const std::string& program = profile.argv.front();
  if (starts_with(program, "/opt/agent/") && !profile.agent_dir.empty()) return closure.take();
  if (program.front() != '/' || program.find("/..") != std::string::npos) {
    return make_error(
        Code::denied,
        fmt::format("with shell \"none\" the program \"{}\" needs a path", printable(program, 80)),
        "give its absolute path, or use --shell sandboxed");
  }
  TRY(const std::string real, real_path(root, program));
  TRY(const ElfFacts facts, read_elf(root == "/" ? real : root + real));
  if (!facts.elf) {
    return make_error(Code::denied,
                      fmt::format("with shell \"none\" {} cannot run: it is no ELF program of this machine",
                                  printable(program, 200)),
                      "a script needs an interpreter, which such a box has not: use --shell sandboxed");
  }
  TRY_VOID(closure.add(program, program, true));
  return closure.take();
}

}  // namespace cofferdam::sandbox
