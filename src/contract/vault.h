// Where the stages keep what they share of one repository: clone its base packs, workspace its checked-out
// trees.
#pragma once

#include <string>

namespace cofferdam::contract {

// The repository's folder in the vault. `repository` is CloneIdentity::repository.
std::string vault_folder(const std::string& vault_dir, const std::string& repository);

}  // namespace cofferdam::contract
