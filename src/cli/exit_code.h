// Which exit code an Error has. (An attempt that ran has the exit code of its outcome: contract/phase.h.)
#pragma once

#include "base/result.h"

namespace cofferdam::cli {

inline constexpr int kExitNotIntact = 1;  // verify
inline constexpr int kExitNotHeld = 1;    // gate
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;
inline constexpr int kExitInternal = 6;

int exit_code_for(Code code);

}  // namespace cofferdam::cli
