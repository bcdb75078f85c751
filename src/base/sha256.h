// SHA-256 (FIPS 180-4) by libcrypto.
#pragma once

#include <string>
#include <string_view>

namespace cofferdam {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case hexadecimal digits

}  // namespace cofferdam
