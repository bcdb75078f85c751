#include "contract/vault.h"

#include "base/sha256.h"

namespace cofferdam::contract {

std::string vault_folder(const std::string& vault_dir, const std::string& repository) {
  return vault_dir + "/" + sha256_hex(repository).substr(0, 16);
}

}  // namespace cofferdam::contract
