#include "golden/bpf.h"

#include <cstring>

namespace cofferdam::golden {
namespace {

// The machine: one accumulator, and the index register that libseccomp does not use.
struct Machine {
  const seccomp_data* data = nullptr;
  std::uint32_t a = 0;
  std::uint32_t scratch[BPF_MEMWORDS] = {};
};

bool load(Machine* machine, std::uint32_t offset) {
  if (offset % 4 != 0 || offset + 4 > sizeof(seccomp_data)) return false;
  std::memcpy(&machine->a, reinterpret_cast<const char*>(machine->data) + offset, 4);  // NOLINT
  return true;
}

bool compute(Machine* machine, const sock_filter& one) {
  switch (BPF_OP(one.code)) {
    case BPF_AND:
      machine->a &= one.k;
      return true;
    case BPF_OR:
      machine->a |= one.k;
      return true;
    case BPF_ADD:
      machine->a += one.k;
      return true;
    case BPF_SUB:
      machine->a -= one.k;
      return true;
    case BPF_RSH:
      machine->a = one.k < 32 ? machine->a >> one.k : 0;
      return one.k < 32;
    default:
      return false;
  }
}

// How far to jump; -1 for an unknown condition.
int jump(const Machine& machine, const sock_filter& one) {
  bool taken = false;
  switch (BPF_OP(one.code)) {
    case BPF_JA:
      return one.k < BPF_MAXINSNS ? static_cast<int>(one.k) : -1;
    case BPF_JEQ:
      taken = machine.a == one.k;
      break;
    case BPF_JGT:
      taken = machine.a > one.k;
      break;
    case BPF_JGE:
      taken = machine.a >= one.k;
      break;
    case BPF_JSET:
      taken = (machine.a & one.k) != 0;
      break;
    default:
      return -1;
  }
  return taken ? one.jt : one.jf;
}

// One instruction that is neither a jump nor a return.
bool simple(Machine* machine, const sock_filter& one) {
  const bool constant = BPF_SRC(one.code) == BPF_K;
  switch (BPF_CLASS(one.code)) {
    case BPF_LD:
      if (one.code == (BPF_LD | BPF_W | BPF_ABS)) return load(machine, one.k);
      if (one.code == (BPF_LD | BPF_IMM)) machine->a = one.k;
      if (one.code == (BPF_LD | BPF_MEM) && one.k < BPF_MEMWORDS) machine->a = machine->scratch[one.k];
      return one.code == (BPF_LD | BPF_IMM) || (one.code == (BPF_LD | BPF_MEM) && one.k < BPF_MEMWORDS);
    case BPF_ST:
      if (one.k >= BPF_MEMWORDS) return false;
      machine->scratch[one.k] = machine->a;
      return true;
    case BPF_ALU:
      return constant && compute(machine, one);
    default:
      return false;
  }
}

}  // namespace

std::vector<sock_filter> instructions_of(const std::string& bytes) {
  if (bytes.empty() || bytes.size() % sizeof(sock_filter) != 0) return {};
  std::vector<sock_filter> program(bytes.size() / sizeof(sock_filter));
  std::memcpy(program.data(), bytes.data(), bytes.size());
  return program;
}

Verdict evaluate(const std::vector<sock_filter>& program, const seccomp_data& data) {
  Machine machine;
  machine.data = &data;
  Verdict verdict;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& one = program[at];
    ++verdict.steps;
    if (BPF_CLASS(one.code) == BPF_RET) {
      verdict.valid = true;
      verdict.action = BPF_RVAL(one.code) == BPF_A ? machine.a : one.k;
      return verdict;
    }
    if (BPF_CLASS(one.code) == BPF_JMP) {
      const int distance = BPF_SRC(one.code) == BPF_K ? jump(machine, one) : -1;
      if (distance < 0) return verdict;
      at += static_cast<std::size_t>(distance);
    } else if (!simple(&machine, one)) {
      return verdict;
    }
  }
  return verdict;  // ran off its end
}

std::string action_name(const Verdict& verdict) {
  if (!verdict.valid) return "INVALID";
  const std::uint32_t data = verdict.action & SECCOMP_RET_DATA;
  switch (verdict.action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return "ALLOW";
    case SECCOMP_RET_ERRNO: {
      const char* name = ::strerrorname_np(static_cast<int>(data));
      return std::string("ERRNO ") + (name == nullptr ? "?" : name);
    }
    case SECCOMP_RET_KILL_PROCESS:
      return "KILL_PROCESS";
    case SECCOMP_RET_KILL_THREAD:
      return "KILL_THREAD";
    default:
      return "OTHER";
  }
}

}  // namespace cofferdam::golden
