// The head of one HTTP/1.1 request from the box, parsed more strictly than RFC 9112 asks: whatever two
// parsers could read differently is refused, so nothing can be smuggled behind it. Pure; bytes in, values
// out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::egress {

inline constexpr std::size_t kMaxHeadBytes = 64U << 10U;
inline constexpr std::size_t kMaxHeaderFields = 100;

struct HeaderField {
  std::string name;  // lower case
  std::string value;
};

enum class Framing { none, length, chunked };

struct RequestHead {
  std::string method;
  std::string target;  // exactly as sent, origin-form
  std::string path;    // up to the first '?', never percent-decoded
  std::string query;   // after it
  bool has_query = false;
  std::vector<HeaderField> fields;
  Framing framing = Framing::none;
  std::size_t content_length = 0;
  bool keep_alive = true;
  bool expect_continue = false;
  bool upgrade = false;  // asks for another protocol; never granted, see the routes
};

// Why a request is answered with `status` and its connection closed.
struct HttpRefusal {
  int status = 400;
  std::string rule;
};

struct ParsedHead {
  RequestHead head;  // as far as it was read when refused: for the account only
  std::optional<HttpRefusal> refusal;
};

// Number of bytes up to and including the empty line that ends the head; npos: not there yet. A line feed
// without carriage return ends it at once, so that the parser can refuse it without waiting for more.
std::size_t find_head_end(std::string_view bytes);
// What a request line may ask for: a path of ours, or what a proxy is asked ("CONNECT host:port", "GET
// http://host/"); in the second form `target` is left as it is, with no path or query split off.
enum class TargetForm { origin, proxy };
// `bytes` is what find_head_end() delimited.
ParsedHead parse_request_head(std::string_view bytes, TargetForm form = TargetForm::origin);

const std::string* find_field(const RequestHead& head, std::string_view name);

}  // namespace cofferdam::egress
