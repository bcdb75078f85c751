// The script: what the stand-in answers, turn by turn. README.md has the format.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cofferdam::standin {

struct Block {
  enum class Kind { text, thinking, tool_use };
  Kind kind = Kind::text;
  std::string text;   // text and thinking
  std::string name;   // tool_use
  std::string input;  // tool_use: a JSON object, encoded
};

struct ScriptedError {
  unsigned status = 500;
  std::string type = "api_error";
  std::string message;
  std::vector<std::pair<std::string, std::string>> headers;
  bool mid_stream = false;  // an error event in a stream that began with 200
};

// Where an answer goes wrong.
enum class Point { never, before_headers, mid_stream };

// What the request of a turn should look like. Never changes the answer; a mismatch shows in the record.
struct Expect {
  std::vector<std::string> last_message_contains;
  std::vector<std::string> system_contains;
  std::optional<std::string> model;
  std::optional<std::vector<std::string>> tools;              // exactly these names, in any order
  std::map<std::string, std::optional<std::string>> headers;  // exact value; nullopt: must be absent
  bool empty() const {
    return last_message_contains.empty() && system_contains.empty() && !model && !tools && headers.empty();
  }
};

struct Usage {
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
};

struct Turn {
  std::vector<Block> blocks;
  std::string stop_reason;  // never empty once loaded
  std::optional<Usage> usage;
  std::optional<ScriptedError> error;
  Point stall = Point::never;
  Point reset = Point::never;
  std::uint64_t flood_bytes = 0;
  // Before the headers: bytes that are no HTTP. Mid-stream: what is neither JSON nor an event.
  Point garbage = Point::never;
  bool truncate = false;  // the answer ends in good order after the first delta
  std::chrono::milliseconds pace{0};
  Expect expect;
};

// A login with single-use refresh tokens.
struct OAuthScript {
  std::string refresh_token;  // the first one that works; empty: there is no login
  std::string access_token;   // accepted from the start, for one lifetime; empty: none
  std::string account_id = "account-stand-in";
  std::chrono::seconds expires_in{3600};  // of every access token
  std::chrono::milliseconds delay{0};     // before every answer of the token endpoint
};

struct Script {
  std::vector<std::string> models;  // empty: every model exists
  std::vector<Turn> turns;
  OAuthScript oauth;
};

// What is answered when the script has no turn left.
Turn final_turn();

// Strict: an unknown key or a wrong type is Code::usage with its place in the document.
Result<Script> parse_script(std::string_view json);
Result<Script> load_script(const std::string& path);

}  // namespace cofferdam::standin
