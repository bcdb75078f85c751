// The Plan: what cofferdam-init does, as data, and its codec. The host side encodes it into a sealed memory
// file; init decodes it with bounds. One `fields` function per struct is both encoder and decoder, so the two
// cannot drift apart. Nothing but the C++ standard library is used here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::plan {

inline constexpr std::uint32_t kMagic = 0x43464431;  // "CFD1"
inline constexpr std::uint32_t kMaxItems = 65536;
inline constexpr std::uint32_t kMaxString = 4U << 20U;

// Descriptor numbers of init when it starts. 0, 1 and 2 are the program's own.
inline constexpr int kControlFd = 3;      // SOCK_SEQPACKET to the supervisor
inline constexpr int kPlanFd = 4;         // the encoded plan
inline constexpr int kUsernsFd = 5;       // the storage's user namespace (boxes)
inline constexpr int kMntnsFd = 6;        // the storage's mount namespace (boxes)
inline constexpr int kFirstExtraFd = 10;  // Plan::program_fds[i] is at kFirstExtraFd + i

// The id of the agent's user and group inside every box.
inline constexpr std::uint32_t kInsideId = 1000;

enum class Role : std::uint8_t { keeper = 1, box = 2 };

// One step in building a mount tree. `a` and `b` are what the comment says; n1..n3 likewise.
enum class OpCode : std::uint8_t {
  dir = 1,      // b: folder to make; n1: mode
  file = 2,     // a: content, b: file to make
  symlink = 3,  // a: text of the link, b: link to make
  tmpfs = 4,    // b: where; n1: bytes, n2: inodes, n3: mode, and kNoExec
  bind = 5,     // a: source, b: target (folder or file, made if missing); n1: kReadOnly, kNoExec
  overlay = 6,  // a: source folder, b: target; read-only, by a relative name, so that no host path shows
  proc = 7,     // b: where
  devpts = 8,   // b: where
  device = 9,   // a: source device node, b: target; n1: expected rdev
  copy = 10,    // n2: descriptor of a regular file of ours, read from its start; b: file to make
  // a: source folder, b: target; writable. What is written goes to "upper" beside the target, whose folder
  // is the storage. Where such a mount does not do on this storage, the target stays as it was, and the
  // reason is in the keeper's `ready`.
  work_tree = 11,
};
// Keeper: a source of bind, overlay and work_tree may be a mount of the supervisor's that is in no tree yet
// (open_tree(2), fsmount(2)), for what our user cannot walk to: n2 is then its descriptor, and `a` is not
// looked at. 0: none.

inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kNoExec = 1U << 16U;  // beside a mode

struct Op {
  OpCode code = OpCode::dir;
  std::string a;
  std::string b;
  std::uint64_t n1 = 0;
  std::uint64_t n2 = 0;
  std::uint64_t n3 = 0;
};

// What each stops something by itself. Only the gate builds a box without one, to show by a harmless act what
// that layer stops: Plan::without has a bit for each.
enum class Layer : std::uint8_t {
  nested_userns,   // the user namespace without rights over the mounts above it
  capabilities,    // the five empty sets
  no_new_privs,    //
  seccomp,         // the system-call filter
  landlock,        // rules over files, abstract sockets and signals
  userns_limit,    // max_user_namespaces is 0
  read_only_root,  //
  masked_proc,     // empty files and folders over parts of /proc
  read_only_proc,  //
  own_proc,        // a proc of the box's own pid namespace
  own_network,     //
  own_ipc,         //
  own_uts,         //
  session,         // a session of the program's own
  closed_fds,      //
  opaque_init,     // PID 1 is not dumpable
  rlimits,         //
  cgroup,          // bounds of the control group
  // Of these the planner leaves the steps out (sandbox/native/plan_box.cc).
  read_only_work,      // of a phase that may only read
  read_only_metadata,  //
  no_output,           // the way out is not in an agent's box
  scratch_bound,       // sizes of HOME, /tmp and /dev/shm
  private_root,        // the host's tree is not there; left out, it is at /host, read-only
  hidden_paths,        // what comes from the host shows no path in the mount table
  // And these init.
  own_cgroup,  // a control-group namespace
  identity,    // nobody's id inside; left out, it is 0
  nosuid,      // of /tmp
  watch,       // init's own look at memory and processes
};
inline constexpr const char* kLayerNames[] = {
    "nested-userns", "capabilities",   "no-new-privs", "seccomp",        "landlock",
    "userns-limit",  "read-only-root", "masked-proc",  "read-only-proc", "own-proc",
    "own-network",   "own-ipc",        "own-uts",      "session",        "closed-fds",
    "opaque-init",   "rlimits",        "cgroup",       "read-only-work", "read-only-metadata",
    "no-output",     "scratch-bound",  "private-root", "hidden-paths",   "own-cgroup",
    "identity",      "nosuid",         "watch"};

// What a program may do with a file or below a folder, in the kernel's own bits (linux/landlock.h,
// LANDLOCK_ACCESS_FS_*). What no rule allows is refused; init leaves out what its kernel does not know.
inline constexpr std::uint64_t kLandlockExecute = 1U << 0U;
inline constexpr std::uint64_t kLandlockWriteFile = 1U << 1U;
inline constexpr std::uint64_t kLandlockReadFile = 1U << 2U;
inline constexpr std::uint64_t kLandlockReadDir = 1U << 3U;
inline constexpr std::uint64_t kLandlockMakeChar = 1U << 6U;
inline constexpr std::uint64_t kLandlockMakeBlock = 1U << 11U;
inline constexpr std::uint64_t kLandlockAbi2 = (1U << 14U) - 1;
inline constexpr std::uint64_t kLandlockTruncate = 1U << 14U;     // since ABI 3
inline constexpr std::uint64_t kLandlockIoctlDevice = 1U << 15U;  // since ABI 5
struct PathRule {
  std::string path;  // in the box's root
  std::uint64_t access = 0;
};

// What the inside probes compare with.
struct Expected {
  std::uint8_t work = 0;  // contract::Access: 0 none, 1 read-only, 2 read-write
  std::uint8_t metadata = 0;
  std::uint8_t output = 0;
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t scratch_inodes = 0;
};

struct Plan {
  Role role = Role::box;
  std::vector<Op> ops;  // in order, in the new root under construction
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  std::string seccomp;                     // array of struct sock_filter
  std::vector<std::uint64_t> listeners;    // loopback TCP ports
  std::vector<std::uint64_t> program_fds;  // numbers that the program keeps beside 0, 1 and 2
  std::vector<std::string> masked;         // files and folders under /proc to hide
  std::vector<std::string> read_only;      // folders under /proc to make read-only
  std::uint64_t deadline_ms = 0;
  std::uint64_t grace_ms = 0;
  std::uint64_t linger_ms = 0;  // keeper: how long it outlives its supervisor
  std::uint64_t file_size_limit = 0;
  std::uint64_t open_files = 4096;
  // Of all processes in the box but init, watched by it; 0: not watched.
  std::uint64_t memory_bytes = 0;
  std::uint64_t pids = 0;           // processes and threads
  std::uint64_t process_limit = 0;  // RLIMIT_NPROC, init included; 0: none
  std::uint64_t without = 0;        // bits of Layer
  std::vector<PathRule> landlock;
  std::uint8_t shell = 1;  // 0: nothing but the agent's own programs can be executed
  Expected expected;
};

inline bool has_layer(const Plan& plan, Layer layer) {
  return ((plan.without >> static_cast<unsigned>(layer)) & 1U) == 0;
}

class Encoder {
 public:
  void integer(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out_.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
  }
  template <typename T>
  void number(const T& value) {
    integer(static_cast<std::uint64_t>(value), sizeof(T));
  }
  void text(const std::string& value) {
    integer(value.size(), 4);
    out_.append(value);
  }
  template <typename T, typename F>
  void list(const std::vector<T>& items, F each) {
    integer(items.size(), 4);
    for (const T& item : items) each(*this, item);
  }
  bool ok() const { return true; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  void number(T& value) {
    std::uint64_t wide = 0;
    if (rest_.size() < sizeof(T)) return fail();
    for (unsigned i = 0; i < sizeof(T); ++i) {
      wide |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    }
    rest_.remove_prefix(sizeof(T));
    value = static_cast<T>(wide);
  }
  void text(std::string& value) {
    std::uint32_t size = 0;
    number(size);
    if (failed_ || size > kMaxString || rest_.size() < size) return fail();
    value.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T, typename F>
  void list(std::vector<T>& items, F each) {
    std::uint32_t count = 0;
    number(count);
    if (failed_ || count > kMaxItems) return fail();
    items.clear();
    for (std::uint32_t i = 0; i < count && !failed_; ++i) {
      items.emplace_back();
      each(*this, items.back());
    }
  }
  bool ok() const { return !failed_ && rest_.empty(); }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  std::string_view rest_;
  bool failed_ = false;
};

template <typename Codec, typename OpT>
void op_fields(Codec& codec, OpT& op) {
  codec.number(op.code);
  codec.text(op.a);
  codec.text(op.b);
  codec.number(op.n1);
  codec.number(op.n2);
  codec.number(op.n3);
}

template <typename Codec, typename RuleT>
void rule_fields(Codec& codec, RuleT& rule) {
  codec.text(rule.path);
  codec.number(rule.access);
}

template <typename Codec, typename PlanT>
void plan_fields(Codec& codec, PlanT& plan) {
  auto text = [](auto& c, auto& item) { c.text(item); };
  auto number = [](auto& c, auto& item) { c.number(item); };
  codec.number(plan.role);
  codec.list(plan.ops, [](auto& c, auto& op) { op_fields(c, op); });
  codec.list(plan.argv, text);
  codec.list(plan.env, text);
  codec.text(plan.cwd);
  codec.text(plan.seccomp);
  codec.list(plan.listeners, number);
  codec.list(plan.program_fds, number);
  codec.list(plan.masked, text);
  codec.list(plan.read_only, text);
  codec.number(plan.deadline_ms);
  codec.number(plan.grace_ms);
  codec.number(plan.linger_ms);
  codec.number(plan.file_size_limit);
  codec.number(plan.open_files);
  codec.number(plan.memory_bytes);
  codec.number(plan.pids);
  codec.number(plan.process_limit);
  codec.number(plan.without);
  codec.list(plan.landlock, [](auto& c, auto& rule) { rule_fields(c, rule); });
  codec.number(plan.shell);
  codec.number(plan.expected.work);
  codec.number(plan.expected.metadata);
  codec.number(plan.expected.output);
  codec.number(plan.expected.work_bytes);
  codec.number(plan.expected.work_inodes);
  codec.number(plan.expected.scratch_bytes);
  codec.number(plan.expected.scratch_inodes);
}

inline std::string encode_plan(const Plan& plan) {
  Encoder encoder;
  encoder.integer(kMagic, 4);
  plan_fields(encoder, plan);
  return encoder.take();
}

// False for anything that is not exactly one plan; `out` is then unspecified.
inline bool decode_plan(std::string_view bytes, Plan* out) {
  Decoder decoder(bytes);
  std::uint32_t magic = 0;
  decoder.number(magic);
  if (magic != kMagic) return false;
  plan_fields(decoder, *out);
  bool role = out->role == Role::keeper || out->role == Role::box;
  bool program = out->role == Role::keeper || !out->argv.empty();
  return decoder.ok() && role && program && out->seccomp.size() % 8 == 0;
}

}  // namespace cofferdam::plan
