#include "contract/result_digest.h"

#include "base/sha256.h"

namespace cofferdam::contract {

std::string result_digest(ResultRecord result) {
  result.chain_head.clear();
  return sha256_hex(encode_result(result));
}

}  // namespace cofferdam::contract
