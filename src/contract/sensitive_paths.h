// Which paths of a change are not just content: files that some program of the user's reads as orders (git,
// a hook manager, a CI service, an agent, an editor, a shell). The list is data; sources: gitattributes(5),
// gitmodules(5), githooks(5), and the documentation of the tools that are named.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cofferdam::contract {

// "attributes", "submodules", "git-config", "hook", "ci", "agent-config" or "environment"; nothing for
// content. `path` is relative to the work tree, raw bytes, with "/" between components. Total: any bytes are
// an input. Letter case, trailing dots and spaces do not count, as file systems that fold them would not see
// them. A path that could stand in for the folder of such a file (a symbolic link named ".vscode") counts as
// that file.
std::optional<std::string> sensitive_kind(std::string_view path);

}  // namespace cofferdam::contract
