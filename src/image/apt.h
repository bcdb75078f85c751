// Debian packages by the machine's own apt: its sources and its keys, lists of our own where the machine's
// are missing or too old. Nothing is installed, and nothing of the machine's apt is changed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "image/lock_file.h"

namespace cofferdam::image {

// Downloads exactly these packages; each file's digest is compared before anybody opens it. Returns their
// paths below `folder` (ours, empty), in the order of `packages`. Code::not_found for a version that is no
// longer there, with the one that is; Code::missing_tool without apt.
Result<std::vector<std::string>> download_packages(const std::vector<LockedPackage>& packages,
                                                   const std::string& folder);
// What the wanted packages and those that they depend on are now, sorted by name.
Result<std::vector<LockedPackage>> resolve_packages(const LockFile& lock, const std::string& folder);

// The pieces of what apt prints, apart for tests.
// "Inst NAME (VERSION SUITE [ARCH])" of `apt-get --simulate install`; the digests are not in it.
std::vector<LockedPackage> simulated(std::string_view output);
// Of the package's paragraph in what `apt-cache show` prints; empty: none.
std::string shown_digest(std::string_view output, const LockedPackage& package);
// The package that apt-get does not find, by its error text; empty: it has another problem.
std::string missing_package(std::string_view said);
// Of `apt-cache policy`; empty: none.
std::string candidate_version(std::string_view output);

}  // namespace cofferdam::image
