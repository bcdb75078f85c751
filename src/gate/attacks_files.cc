// Files: what can be read, written and filled.
#include "gate/attack.h"

namespace cofferdam::gate {
namespace {

void add_writing(std::vector<Attack>* out) {
  const std::vector<std::string> root = {"read-only-root"};
  const std::vector<std::string> scratch = {"scratch-bound"};
  const std::vector<Attack> rows = {
      {"plant-root", "root-read-only", "C9", root, "plant a file in /", "create /x"},
      {"plant-etc", "root-read-only", "C9", root, "plant a file in /etc", "create /etc/x"},
      {"plant-dev", "root-read-only", "D31", root, "plant a file in /dev", "create /dev/x"},
      {"plant-home", "root-read-only", "C17", root, "plant a file in /home", "create /home/x"},
      {"plant-workspace",
       "work-tree",
       "C9",
       {"read-only-work"},
       "change the work tree of a planning phase",
       "create /workspace/x",
       Setting::planning},
      {"plant-hook",
       "git-metadata",
       "C9",
       {"read-only-metadata"},
       "write git metadata",
       "create /workspace/.git/x"},
      {"forge-output", "output", "C9", {"no-output"}, "write into the way out", "create /out/x"},
      {"fill-workspace",
       "storage-bound",
       "C20",
       {kStorageBound},
       "4 MiB into a work tree of 2",
       "fill-bytes /workspace 4194304"},
      {"fill-workspace-inodes",
       "storage-bound",
       "C20",
       {kStorageBound},
       "500 files into a work tree of 256",
       "fill-inodes /workspace 500"},
      {"fill-tmp", "scratch-bound", "C22 D34", scratch, "2 MiB into a /tmp of 1", "fill-bytes /tmp 2097152"},
      {"fill-tmp-inodes", "scratch-bound", "C20", scratch, "300 files into a /tmp of 128",
       "fill-inodes /tmp 300"},
      {"fill-home", "scratch-bound", "C22", scratch, "2 MiB into a HOME of 1",
       "fill-bytes /home/agent 2097152"},
      {"fill-shm", "scratch-bound", "D34", scratch, "2 MiB into a /dev/shm of 1",
       "fill-bytes /dev/shm 2097152"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_reading(std::vector<Attack>* out) {
  const std::vector<std::string> tree = {"private-root"};
  const std::vector<Attack> rows = {
      {"host-file", "host-paths", "C17", tree, "read a file of the host", "open-read /host$folder/canary"},
      {"host-file-of-groups", "supplementary-groups", "C9", tree,
       "read what the caller, and groups of the caller's, may read", "open-read /host$folder/canary"},
      {"host-passwd", "host-paths", "C9", tree, "read the host's accounts", "open-read /host/etc/passwd"},
      {"host-sys", "kernel-settings", "D12", tree, "see /sys", "list /host/sys"},
      {"host-socket", "host-paths", "C3 C5 D26", tree, "connect to a socket of the host by its path",
       "connect-stream /host$folder/stream"},
      {"host-datagram-socket", "host-paths", "C4 D26", tree, "the same with a datagram socket",
       "connect-datagram /host$folder/datagram"},
      {"host-path-in-mounts",
       "host-paths",
       "G17",
       {"hidden-paths"},
       "find a host path in the mount table",
       "mounts-show $leaf"},
      {"masked-file",
       "kernel-settings",
       "D18",
       {"masked-proc"},
       "read a dangerous file of /proc",
       "read-content /proc/kallsyms"},
      // Landlock takes a whiteout for a device on some kernels, and on others for a file.
      {"whiteout",
       "seccomp",
       "D31 D41",
       {"seccomp"},
       "make an overlay whiteout",
       "whiteout /tmp/w",
       Setting::agent,
       Need::nothing,
       false,
       {"landlock"}},
      {"whiteout-workspace",
       "seccomp",
       "D41",
       {"seccomp"},
       "the same in the work tree",
       "whiteout /workspace/w",
       Setting::agent,
       Need::nothing,
       false,
       {"landlock"}},
      {"write-random",
       "landlock",
       "",
       {"landlock"},
       "open a device that is for reading for writing",
       "open-write /dev/urandom"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

}  // namespace

void add_file_attacks(std::vector<Attack>* out) {
  add_writing(out);
  add_reading(out);
}

}  // namespace cofferdam::gate
