// What the gate leaves on the host for its boxes not to find: a folder with a file, two sockets, and servers
// on loopback and at an abstract name. All of it goes with the object.
//
// Thread rules: one owner.
#pragma once

#include <map>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace cofferdam::gate {

class Canary {
 public:
  // `probe`: path of cofferdam-probe, which is copied into agent_dir() so that every user can run it.
  static Result<Canary> make(const std::string& probe);

  std::string agent_dir() const { return folder_.path() + "/agent"; }
  int folder_fd() const { return folder_fd_.get(); }
  int terminal_fd() const { return terminal_.get(); }  // a terminal of the gate's own
  // The act with every $NAME replaced: $folder, $leaf (its last part), $abstract, $port, $pid, $name (of this
  // process), $net, $ipc, $uts, $cgroup (texts of the host's namespaces), and $hold.
  std::string fill_in(std::string act, bool watched) const;

 private:
  explicit Canary(TempDir folder) : folder_(std::move(folder)) {}
  Status make_files(const std::string& probe);
  Status make_sockets();
  Status make_terminal();
  void learn_names();
  TempDir folder_;
  UniqueFd folder_fd_;
  UniqueFd stream_;
  UniqueFd datagram_;
  UniqueFd abstract_;
  UniqueFd loopback_;
  UniqueFd master_;
  UniqueFd terminal_;
  std::map<std::string, std::string> names_;
};

}  // namespace cofferdam::gate
