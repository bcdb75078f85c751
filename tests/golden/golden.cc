#include "golden/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace cofferdam::golden {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = COFFERDAM_SOURCE_DIR "/tests/golden/expected/" + name + ".txt";
  const char* update = ::getenv("COFFERDAM_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    Status written = write_file_atomic(path, text, 0644);
    ASSERT_TRUE(written) << written.error().line();
    return;
  }
  auto expected = read_file(path, 1U << 20U);
  ASSERT_TRUE(expected) << expected.error().line() << "; run once with COFFERDAM_UPDATE_GOLDEN=1";
  EXPECT_EQ(text, *expected)
      << "if this change is meant, run with COFFERDAM_UPDATE_GOLDEN=1 and read the diff of " << name
      << ".txt";
}

}  // namespace cofferdam::golden
