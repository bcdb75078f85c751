// What the server and a vendor's API say to each other. One vendor is one implementation of VendorApi in a
// file of its own; the server asks each in turn.
//
// Thread rules: handle() is called from one thread per connection at the same time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cofferdam::standin {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::uint64_t connection = 0;  // 1, 2, ... in the order of accepting
  std::string method;
  std::string target;                          // as sent, with the query
  std::map<std::string, std::string> headers;  // names in lower case; repeated ones joined by ", "
  std::string body;

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  std::string_view header(const std::string& name) const;  // empty when absent
};

// The answering side of one request. The request is recorded before the first byte of the answer leaves (or
// before the silence begins), so whoever has seen an answer can read its record. Every call that returns a
// bool says whether the client is still there.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  // Adds a member to the request's record; `json` is the encoded value.
  virtual void note(const std::string& key, const std::string& json) = 0;
  virtual bool respond(unsigned status, const Headers& headers, const std::string& body) = 0;
  // A chunked answer: begin, chunks, end.
  virtual bool begin(unsigned status, const Headers& headers) = 0;
  virtual bool chunk(std::string_view bytes) = 0;
  virtual bool end() = 0;
  // Says nothing until the client goes or the program ends.
  virtual void hold() = 0;
  // Ends the connection with a TCP reset.
  virtual void reset() = 0;
  // Answers with what is no HTTP at all, and ends the connection.
  virtual void babble() = 0;
  // Lets `time` pass, for scripted slowness; false at once when the program ends.
  virtual bool pace(std::chrono::milliseconds time) = 0;
};

class VendorApi {
 public:
  VendorApi() = default;
  VendorApi(const VendorApi&) = delete;
  VendorApi& operator=(const VendorApi&) = delete;
  virtual ~VendorApi() = default;
  // False when the target is not of this vendor; then nothing was sent.
  virtual bool handle(const Request& request, Exchange& exchange) = 0;
};

}  // namespace cofferdam::standin
