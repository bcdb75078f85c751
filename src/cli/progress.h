// What happens, for a person who waits: lines on standard error, never the result.
#pragma once

#include <string>

#include "contract/event.h"

namespace cofferdam::cli {

enum class Weight {
  skip,     // says nothing to a person
  passing,  // one of many: a terminal shows only the last one
  line,
};

// How an event reads: one printable line.
struct EventText {
  Weight weight = Weight::skip;
  std::string text;
};
EventText describe_event(const contract::Event& event);

// Plain lines; on a terminal the passing ones share one status line that is rewritten in place.
class Progress {
 public:
  // `fd` is borrowed.
  Progress(int fd, bool terminal) : fd_(fd), terminal_(terminal) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(const contract::Event& event);
  // Removes the status line, so that something else may be printed.
  void clear();

 private:
  void print(const std::string& text) const;
  void note(const std::string& text);
  int fd_;
  bool terminal_;
  bool status_shown_ = false;
  bool dirty_taken_ = false;
  Timestamp first_;
};

// A terminal on which a line can be rewritten.
bool is_rewritable_terminal(int fd);

}  // namespace cofferdam::cli
