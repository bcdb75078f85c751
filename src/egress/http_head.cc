#include "egress/http_head.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

using Refusal = std::optional<HttpRefusal>;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool is_token_char(char c) {
  bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alnum || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// No obs-text, no control characters but tab.
bool is_value_char(char c) {
  return c == '\t' || (c >= ' ' && c <= '~');
}

Refusal refuse(int status, const char* rule) {
  return HttpRefusal{status, rule};
}

// Optional white space (RFC 9110, section 5.6.3): exactly space and tab.
std::string_view trim_ows(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Refusal parse_request_line(std::string_view line, TargetForm form, RequestHead* head) {
  std::size_t first = line.find(' ');
  std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return refuse(400, "http: request line");
  std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  std::string_view version = line.substr(second + 1);
  if (!is_token(method) || method.size() > 16) return refuse(400, "http: method");
  head->method = std::string(method);
  head->target = std::string(target);
  if (version != "HTTP/1.1") return refuse(505, "http: version");
  const bool origin = form == TargetForm::origin;
  if (origin && method == "CONNECT") return refuse(405, "http: connect");
  bool visible =
      std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c <= '~' && c != '#'; });
  if (target.empty() || !visible) return refuse(400, "http: target");
  if (!origin) return target.front() == '/' ? refuse(400, "http: origin-form") : std::nullopt;
  if (target.front() != '/') return refuse(400, "http: absolute-form");
  std::size_t mark = target.find('?');
  head->has_query = mark != std::string_view::npos;
  head->path = std::string(target.substr(0, mark));
  if (head->has_query) head->query = std::string(target.substr(mark + 1));
  return std::nullopt;
}

Refusal parse_field(std::string_view line, RequestHead* head) {
  if (line.front() == ' ' || line.front() == '\t') return refuse(400, "http: obs-fold");
  std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return refuse(400, "http: field name");
  std::string_view value = trim_ows(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_char)) return refuse(400, "http: field value");
  if (head->fields.size() == kMaxHeaderFields) return refuse(431, "http: too many fields");
  head->fields.push_back({to_lower(line.substr(0, colon)), std::string(value)});
  return std::nullopt;
}

// Fields whose repetition would leave their meaning to the reader.
constexpr std::array<std::string_view, 7> kSingle = {"host",         "content-length",   "transfer-encoding",
                                                     "content-type", "content-encoding", "expect",
                                                     "authorization"};

Refusal check_repeats(const RequestHead& head) {
  for (std::string_view name : kSingle) {
    auto count = std::count_if(head.fields.begin(), head.fields.end(),
                               [&](const HeaderField& field) { return field.name == name; });
    if (count > 1)
      return refuse(400, name == "content-length" ? "http: two content-length" : "http: repeated field");
  }
  if (find_field(head, "host") == nullptr) return refuse(400, "http: no host");
  return std::nullopt;
}

Refusal read_framing(RequestHead* head) {
  const std::string* length = find_field(*head, "content-length");
  const std::string* coding = find_field(*head, "transfer-encoding");
  if (length != nullptr && coding != nullptr)
    return refuse(400, "http: content-length with transfer-encoding");
  if (coding != nullptr) {
    if (to_lower(*coding) != "chunked") return refuse(501, "http: transfer-encoding");
    head->framing = Framing::chunked;
  }
  if (length != nullptr) {
    bool digits = !length->empty() && length->size() <= 15 &&
                  std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return refuse(400, "http: content-length");
    std::from_chars(length->data(), length->data() + length->size(), head->content_length);
    head->framing = head->content_length == 0 ? Framing::none : Framing::length;
  }
  return std::nullopt;
}

// Everything that would turn the connection, or the body, into something else than plain HTTP/1.1.
Refusal read_connection(RequestHead* head) {
  for (const HeaderField& field : head->fields) {
    if (field.name == "http2-settings") return refuse(400, "http: upgrade");
    if (field.name == "upgrade") head->upgrade = true;
    if (field.name == "trailer") return refuse(400, "http: trailer");
    if (field.name != "connection") continue;
    for (const std::string& part : split(to_lower(field.value), ',')) {
      std::string_view option = trim_ows(part);
      if (option == "upgrade") head->upgrade = true;
      if (option == "close") head->keep_alive = false;
    }
  }
  const std::string* encoding = find_field(*head, "content-encoding");
  if (encoding != nullptr && to_lower(*encoding) != "identity") return refuse(415, "http: content-encoding");
  const std::string* expect = find_field(*head, "expect");
  if (expect != nullptr) {
    if (to_lower(*expect) != "100-continue") return refuse(417, "http: expect");
    head->expect_continue = true;
  }
  return std::nullopt;
}

// The next line without its CRLF; refuses line endings of any other kind.
Refusal next_line(std::string_view* rest, std::string_view* line) {
  std::size_t end = rest->find_first_of("\r\n");
  if (end == std::string_view::npos || rest->substr(end, 2) != "\r\n")
    return refuse(400, "http: line ending");
  *line = rest->substr(0, end);
  rest->remove_prefix(end + 2);
  return std::nullopt;
}

Refusal parse(std::string_view bytes, TargetForm form, RequestHead* head) {
  if (bytes.size() > kMaxHeadBytes) return refuse(431, "http: head too large");
  std::string_view line;
  if (auto refusal = next_line(&bytes, &line)) return refusal;
  if (auto refusal = parse_request_line(line, form, head)) return refusal;
  while (true) {
    if (auto refusal = next_line(&bytes, &line)) return refusal;
    if (line.empty()) break;
    if (auto refusal = parse_field(line, head)) return refusal;
  }
  if (auto refusal = check_repeats(*head)) return refusal;
  if (auto refusal = read_framing(head)) return refusal;
  return read_connection(head);
}

}  // namespace

const std::string* find_field(const RequestHead& head, std::string_view name) {
  for (const HeaderField& field : head.fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

std::size_t find_head_end(std::string_view bytes) {
  std::size_t position = bytes.find('\n');
  while (position != std::string_view::npos) {
    bool bare = position == 0 || bytes[position - 1] != '\r';
    bool empty_line = position >= 3 && bytes.substr(position - 3, 4) == "\r\n\r\n";
    // An empty first line is no request line either: no need to wait.
    if (bare || empty_line || position == 1) return position + 1;
    position = bytes.find('\n', position + 1);
  }
  return std::string_view::npos;
}

ParsedHead parse_request_head(std::string_view bytes, TargetForm form) {
  ParsedHead out;
  out.refusal = parse(bytes, form, &out.head);
  return out;
}

}  // namespace cofferdam::egress
