// Archives for the tests, and the script of the unpack box run outside of it: it is the same text.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>

#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "image/stream.h"
#include "image/unpack.h"

namespace cofferdam::image {

inline void make_archive(const std::string& kind, const std::string& path) {
  SpawnOptions options;
  options.program = kPython;
  options.argv = {kPython, std::string(COFFERDAM_SOURCE_DIR) + "/tests/unit/image/make_archive.py", kind,
                  path};
  options.env = {"PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"};
  auto made = run_capture(std::move(options), {}, {});
  ASSERT_TRUE(made && made->status.success()) << (made ? made->err : made.error().line());
}

// From an archive to a stream at `stream`; what the script says.
inline Result<std::uint64_t> read_archive(const std::string& archive, const std::string& stream,
                                          const UnpackInput& input) {
  TRY(const UniqueFd in, open_file(archive, O_RDONLY));
  TRY(const UniqueFd out, open_file(stream, O_WRONLY | O_CREAT | O_TRUNC));
  SpawnOptions options;
  options.program = kPython;
  options.argv = unpack_argv(input);
  options.env = {"PATH=/usr/bin:/bin"};
  options.fds = {{in.get(), 3}, {out.get(), 4}};
  TRY(const Captured ran, run_capture(std::move(options), {}, {}));
  EXPECT_TRUE(ran.status.success()) << ran.err;
  return read_verdict(ran.out);
}

}  // namespace cofferdam::image
