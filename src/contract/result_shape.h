// The closed sets and bounds of the result: the encoder keeps to them, so that the decoder reads whatever was
// written.
#pragma once

#include <cstddef>

namespace cofferdam::contract {

inline constexpr const char* kResultSchema = "cofferdam.result/1";
inline constexpr std::size_t kMaxResultBytes = 256U << 20U;
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxLineBytes = 4096;  // causes, reasons, proofs
inline constexpr std::size_t kMaxSummaryBytes = 64U << 10U;
inline constexpr std::size_t kMaxAnswerBytes = 16U << 20U;
inline constexpr std::size_t kMaxChangedPathBytes = 16U << 10U;
inline constexpr std::size_t kMaxListed = 10'000;  // files, findings
// An agent chooses its paths: escaped, 10 000 long ones could make a result that nobody can read.
inline constexpr std::size_t kMaxListedBytes = 4U << 20U;
inline constexpr std::size_t kMaxIgnoredListed = 200;
inline constexpr std::size_t kMaxCommits = 1000;
inline constexpr std::size_t kMaxControls = 256;
inline constexpr std::size_t kMaxLeft = 64;
inline constexpr double kMaxCostUsd = 1e9;

}  // namespace cofferdam::contract
