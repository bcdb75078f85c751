// Finds the end of the first JSON document in a stream, so that what follows it (cancel lines) is left alone.
// It decides nothing about validity: contract/invocation.h does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cofferdam::cli {

class DocumentScanner {
 public:
  // Takes the next bytes of the stream. Returns how many of them belong to the document; fewer than given, or
  // a complete() document, means that it ended there. To be called until complete().
  std::size_t feed(std::string_view bytes);
  bool complete() const { return complete_; }

 private:
  bool step(char byte);

  int depth_ = 0;
  bool started_ = false;
  bool bare_ = false;  // neither an object nor an array: not a document of ours, ends with its line
  bool in_string_ = false;
  bool escaped_ = false;
  bool complete_ = false;
};

struct Document {
  std::string text;
  std::string leftover;  // read already, but behind the document
};

// Reads from the stream until the first document is complete, or the stream ends: then the text may be no
// document at all. More than `max_bytes` of it is Code::usage.
Result<Document> read_document(int fd, std::size_t max_bytes);

}  // namespace cofferdam::cli
