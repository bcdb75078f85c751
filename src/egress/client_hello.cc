#include "egress/client_hello.h"

#include <cstdint>
#include <set>

namespace cofferdam::egress {
namespace {

constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kClientHello = 1;
constexpr unsigned kServerName = 0;
constexpr unsigned kEncryptedHello = 0xFE0D;   // RFC 9849
constexpr unsigned kEncryptedName = 0xFFCE;    // the draft before it (ESNI)
constexpr unsigned kOuterExtensions = 0xFD00;  // only ever inside an encrypted hello

// Reads big-endian numbers and counted bytes; after the first shortage everything is empty and !ok().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }
  unsigned number(std::size_t bytes) {
    unsigned out = 0;
    for (char c : take(bytes)) out = out << 8U | static_cast<std::uint8_t>(c);
    return out;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }
  // Bytes behind a count of `width` bytes.
  std::string_view counted(std::size_t width) { return take(number(width)); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

ClientHello bad() {
  return {ClientHello::State::bad, {}, false};
}

// RFC 6066, section 3: a list, of which exactly one host name is understood.
bool read_server_name(std::string_view bytes, ClientHello* out) {
  Cursor list(bytes);
  Cursor entry(list.counted(2));
  const unsigned type = entry.number(1);
  std::string_view name = entry.counted(2);
  if (!list.ok() || !list.empty() || !entry.ok() || !entry.empty() || type != 0 || name.empty()) return false;
  out->server_name = std::string(name);
  return true;
}

bool read_extensions(std::string_view bytes, ClientHello* out) {
  Cursor in(bytes);
  std::set<unsigned> seen;
  while (!in.empty()) {
    const unsigned type = in.number(2);
    std::string_view data = in.counted(2);
    if (!in.ok() || !seen.insert(type).second) return false;
    if (type == kServerName && !read_server_name(data, out)) return false;
    out->encrypted |= type == kEncryptedHello || type == kEncryptedName || type == kOuterExtensions;
  }
  return in.ok();
}

// The body of the handshake message: RFC 8446, section 4.1.2.
ClientHello read_body(std::string_view bytes) {
  Cursor in(bytes);
  ClientHello out{ClientHello::State::done, {}, false};
  const unsigned version = in.number(2);
  in.take(32);  // random
  const std::size_t session = in.counted(1).size();
  const std::size_t suites = in.counted(2).size();
  const std::size_t compressions = in.counted(1).size();
  if (!in.ok() || version < 0x0301 || version > 0x0303 || session > 32) return bad();
  if (suites < 2 || suites % 2 != 0 || compressions == 0) return bad();
  if (in.empty()) return out;  // no extension, so no name
  std::string_view extensions = in.counted(2);
  if (!in.ok() || !in.empty() || !read_extensions(extensions, &out)) return bad();
  return out;
}

}  // namespace

ClientHello read_client_hello(std::string_view bytes) {
  const ClientHello more{ClientHello::State::more, {}, false};
  std::string message;  // of all records so far
  Cursor in(bytes);
  while (true) {
    if (in.left() < 5) {
      // What can already be seen to be something else is not waited for.
      if (in.left() > 0 && in.number(1) != kHandshake) return bad();
      return bytes.size() > kMaxHelloBytes ? bad() : more;
    }
    const unsigned type = in.number(1);
    const unsigned version = in.number(2);
    const unsigned size = in.number(2);
    if (type != kHandshake || version < 0x0301 || version > 0x0303 || size == 0 || size > kMaxHelloBytes) {
      return bad();
    }
    const bool whole = in.left() >= size;
    message += in.take(whole ? size : in.left());
    if (static_cast<std::uint8_t>(message.empty() ? kClientHello : message[0]) != kClientHello) return bad();
    if (message.size() >= 4) {
      Cursor head(message);
      head.take(1);
      const std::size_t wanted = head.number(3);
      if (wanted > kMaxHelloBytes) return bad();
      // A message ends with a record: what would stand behind it is not for a client to send yet.
      if (message.size() > wanted + 4) return bad();
      if (message.size() == wanted + 4) return whole ? read_body(head.take(wanted)) : bad();
    }
    if (!whole) return bytes.size() > 2 * kMaxHelloBytes ? bad() : more;
  }
}

}  // namespace cofferdam::egress
