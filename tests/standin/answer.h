// What the vendors' APIs have in common when they answer a turn of the script.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "script.h"
#include "vendor_api.h"

namespace cofferdam::standin {

using Json = nlohmann::json;

inline constexpr std::size_t kFloodBytes = 16384;  // per event of a flood
inline constexpr const char* kEventStream = "text/event-stream; charset=utf-8";

std::string dump(const Json& json);
// About what a vendor's tokeniser makes of it; never zero.
std::uint64_t estimate_tokens(std::uint64_t bytes);
// Of a whole turn: as scripted, otherwise estimated.
Usage usage_of(const Turn& turn, const Request& request);

// Each adds what is not as expected.
void expect_texts(const std::string& where, const std::string& text, const std::vector<std::string>& wanted,
                  Json* mismatches);
void expect_tools(const Expect& expect, std::vector<std::string> names, Json* mismatches);
void expect_headers(const Expect& expect, const Request& request, Json* mismatches);

// A text in small pieces, so that an answer is many events as the vendor's is. Never cut between the bytes of
// one character: each event is JSON by itself. One empty piece for an empty text.
std::vector<std::string> delta_pieces(const std::string& text);

// After a delta: whether the script wants the stream to go wrong here, where the client has seen the
// beginning of a block and will never see its end. Stalls and resets have happened when it returns; an error,
// garbage and the early end are left to the caller, in its vendor's form.
bool misfortune_strikes(Exchange& exchange, const Turn& turn);

}  // namespace cofferdam::standin
