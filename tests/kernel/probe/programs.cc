// Ways to get a program executed.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "acts.h"

namespace box_probe {
namespace {

// The errno of execve(2); 0 when the program ran to exit code 0, ENOEXEC when it ended otherwise.
int execute(const Args& args) {
  int report[2];
  if (args.empty() || ::pipe2(report, O_CLOEXEC) != 0) return EINVAL;
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    std::vector<char*> argv;
    argv.reserve(args.size() + 1);
    for (const std::string& one : args) argv.push_back(const_cast<char*>(one.c_str()));  // NOLINT
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    const int error = errno;
    ::_exit(::write(report[1], &error, sizeof error) == sizeof error ? 127 : 126);
  }
  ::close(report[1]);
  int error = 0;
  const bool failed = ::read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (failed) return error;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : ENOEXEC;
}

int copy(const std::string& from, const std::string& to) {
  {
    std::ifstream in(from, std::ios::binary);
    std::ofstream out(to, std::ios::binary);
    if (!in || !out) return ENOENT;
    out << in.rdbuf();
  }
  return outcome(::chmod(to.c_str(), 0755));
}

// FROM TO ARG...: a copy of FROM at TO is executed.
int execute_copy(const Args& args) {
  const int error = copy(argument(args, 0), argument(args, 1));
  return error != 0 ? error : execute(Args(args.begin() + 1, args.end()));
}

// LOADER FROM TO ARG...: the loader is told to run a copy of FROM at TO.
int load_copy(const Args& args) {
  const int error = copy(argument(args, 1), argument(args, 2));
  if (error != 0) return error;
  Args argv = {argument(args, 0)};
  argv.insert(argv.end(), args.begin() + 2, args.end());
  return execute(argv);
}

// PATH INTERPRETER ARG: a script at PATH is executed.
int execute_script(const Args& args) {
  const std::string path = argument(args, 0);
  {
    std::ofstream out(path);
    out << "#!" << argument(args, 1) << " " << argument(args, 2) << "\n";
    if (!out) return EIO;
  }
  if (::chmod(path.c_str(), 0755) != 0) return errno;
  return execute({path});
}

}  // namespace

std::vector<Act> program_acts() {
  return {{"execute", execute},
          {"execute-copy", execute_copy},
          {"load-copy", load_copy},
          {"execute-script", execute_script}};
}

}  // namespace box_probe
