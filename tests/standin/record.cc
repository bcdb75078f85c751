#include "record.h"

#include <fcntl.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/io.h"

namespace cofferdam::standin {
namespace {

using Json = nlohmann::json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json body_of(const Request& request) {
  if (request.body.size() > kMaxRecordedBody) return request.body.substr(0, kMaxRecordedBody);
  Json parsed = Json::parse(request.body, nullptr, false);
  if (parsed.is_discarded()) return request.body;
  return parsed;
}

}  // namespace

Result<Recorder> Recorder::open(const std::string& path) {
  if (path.empty()) return Recorder(UniqueFd());
  TRY(UniqueFd fd, open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND));
  return Recorder(std::move(fd));
}

void Recorder::write(const Request& request, unsigned status,
                     const std::map<std::string, std::string>& notes) {
  if (!fd_.valid()) return;
  Json line = Json::object();
  line["at"] = to_rfc3339(now());
  line["connection"] = request.connection;
  line["method"] = request.method;
  line["target"] = request.target;
  line["headers"] = request.headers;
  line["body"] = body_of(request);
  line["body_bytes"] = request.body.size();
  line["status"] = status;
  for (const auto& [key, json] : notes) line[key] = Json::parse(json, nullptr, false);
  const std::string bytes = dump(line) + "\n";
  const std::lock_guard<std::mutex> lock(mutex_);
  Status written = write_all(fd_.get(), bytes);
  if (!written) std::fprintf(stderr, "cofferdam-standin: record: %s\n", written.error().what.c_str());
}

}  // namespace cofferdam::standin
