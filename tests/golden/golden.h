// A text and the file that it has to equal.
#pragma once

#include <string>

namespace cofferdam::golden {

// Compares with expected/NAME.txt, or writes it when COFFERDAM_UPDATE_GOLDEN is 1.
void expect_golden(const std::string& name, const std::string& text);

}  // namespace cofferdam::golden
