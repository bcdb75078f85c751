// Random work on a tree, as a POSIX shell script: the same for the same seed, and the same result wherever it
// runs on the same tree. What a step needs is asked for in the script itself.
#pragma once

#include <string>

namespace cofferdam::test {

// Makes about 40 files: text with every kind of line end, binary, executable, links, folders, attributes.
std::string random_tree(unsigned seed);
// `count` steps on whatever lies there: create, write anew, append, same size with the time put back, remove,
// rename, chmod, links, empty folders, a file that becomes a folder or a link and back.
std::string random_edits(unsigned seed, unsigned count);

}  // namespace cofferdam::test
