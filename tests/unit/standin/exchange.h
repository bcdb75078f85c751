// An exchange that keeps what it is told.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "vendor_api.h"

namespace cofferdam::standin {

using Json = nlohmann::json;

struct Kept {
  Json json() const { return Json::parse(body); }
  // The data of every event of a stream.
  std::vector<Json> events() const {
    std::vector<Json> out;
    for (const std::string& line : split(body, '\n')) {
      if (starts_with(line, "data: ")) out.push_back(Json::parse(line.substr(6), nullptr, false));
    }
    return out;
  }

  std::map<std::string, Json> notes;
  unsigned status = 0;
  Headers headers;
  std::string body;
  bool ended = false;
  bool held = false;
  bool was_reset = false;
  bool babbled = false;
};

class KeptExchange final : public Exchange, public Kept {
 public:
  void note(const std::string& key, const std::string& json) override { notes[key] = Json::parse(json); }
  bool respond(unsigned code, const Headers& given, const std::string& text) override {
    status = code;
    headers = given;
    body = text;
    return true;
  }
  bool begin(unsigned code, const Headers& given) override { return respond(code, given, ""); }
  bool chunk(std::string_view bytes) override {
    body += bytes;
    return !held && !was_reset;
  }
  bool end() override {
    ended = !held && !was_reset;
    return ended;
  }
  void hold() override { held = true; }
  void reset() override { was_reset = true; }
  void babble() override { babbled = true; }
  bool pace(std::chrono::milliseconds) override { return true; }
};

inline Request make_request(const std::string& method, const std::string& target, const std::string& bearer,
                            const std::string& body = {}) {
  Request request;
  request.method = method;
  request.target = target;
  if (!bearer.empty()) request.headers["authorization"] = "Bearer " + bearer;
  request.body = body;
  return request;
}

}  // namespace cofferdam::standin
