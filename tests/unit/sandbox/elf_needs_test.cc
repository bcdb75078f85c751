// The files that a program needs to start, read from its ELF headers.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "sandbox/native/elf_needs.h"

namespace cofferdam::sandbox {
namespace {

contract::Profile command(const std::string& program) {
  contract::Profile profile;
  profile.argv = {program};
  profile.shell = contract::Shell::none;
  return profile;
}

bool holds(const std::vector<ProgramFile>& files, const std::string& name, bool execute) {
  return std::any_of(files.begin(), files.end(), [&](const ProgramFile& file) {
    return file.target.substr(file.target.rfind('/') + 1) == name && file.execute == execute;
  });
}

TEST(ElfNeeds, ADynamicProgramNamesItsLoaderAndLibraries) {
  auto facts = read_elf("/usr/bin/ls");
  ASSERT_TRUE(facts) << facts.error().line();
  EXPECT_TRUE(facts->elf);
  EXPECT_NE(facts->interpreter.find("ld-linux"), std::string::npos) << facts->interpreter;
  EXPECT_EQ(std::count(facts->needed.begin(), facts->needed.end(), "libc.so.6"), 1);
  auto files = program_files(command("/usr/bin/ls"));
  ASSERT_TRUE(files) << files.error().line();
  EXPECT_TRUE(holds(*files, "ls", true));
  EXPECT_TRUE(holds(*files, "ld-linux-x86-64.so.2", true));
  EXPECT_TRUE(holds(*files, "libc.so.6", false));
  EXPECT_TRUE(holds(*files, "libselinux.so.1", false)) << "a library of its own";
  EXPECT_FALSE(holds(*files, "bash", true));
}

// A copy of a program that names something else, which is no longer than what it named before.
std::string changed_copy(const TempDir& folder, const std::string& from, std::string to) {
  std::string bytes = read_file("/usr/bin/ls", 16U << 20U).value();
  const std::size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  to.resize(from.size(), '\0');
  bytes.replace(at, from.size(), to);
  const std::string path = folder.path() + "/changed";
  EXPECT_TRUE(write_file_atomic(path, bytes));
  return path;
}

// What an agent's program names must not choose what of the host comes into its box.
TEST(ElfNeeds, AProgramDoesNotChooseFilesOfTheHost) {
  const TempDir folder = std::move(*TempDir::create("/tmp", "cofferdam-test-"));
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  EXPECT_TRUE(program_files(command(changed_copy(folder, loader, loader)))) << "the control";
  for (const char* other : {"/etc", "/etc/passwd", "/usr/bin/dash", "/dev/null", "relative"}) {
    auto files = program_files(command(changed_copy(folder, loader, other)));
    ASSERT_FALSE(files) << other;
    EXPECT_EQ(files.error().code, Code::denied) << files.error().line();
    EXPECT_NE(files.error().what.find(other), std::string::npos) << files.error().line();
  }
  for (const char* name : {"..", ".", "/etc", "../x"}) {
    auto files = program_files(command(changed_copy(folder, "libselinux.so.1", name)));
    ASSERT_FALSE(files) << name;
    EXPECT_EQ(files.error().code, Code::denied) << files.error().line();
  }
  auto folder_itself = program_files(command("/usr/lib"));
  ASSERT_FALSE(folder_itself);
  EXPECT_EQ(folder_itself.error().code, Code::denied) << folder_itself.error().line();
}

TEST(ElfNeeds, AStaticProgramNeedsNothing) {
  auto facts = read_elf(COFFERDAM_BUILD_DIR "/cofferdam-init");
  ASSERT_TRUE(facts) << facts.error().line();
  EXPECT_TRUE(facts->elf);
  EXPECT_EQ(facts->interpreter, "");
  EXPECT_TRUE(facts->needed.empty());
}

TEST(ElfNeeds, WhatIsNoProgramIsRefused) {
  for (const char* name : {"ls", "bin/ls", "/etc/passwd", "/usr/bin/../bin/ls"}) {
    auto files = program_files(command(name));
    ASSERT_FALSE(files) << name;
    EXPECT_EQ(files.error().code, Code::denied) << name;
  }
}

// Whatever is cut off or overwritten: facts or none, never more than is in the file.
TEST(ElfNeeds, BrokenHeaders) {
  auto bytes = read_file("/usr/bin/ls", 16U << 20U);
  ASSERT_TRUE(bytes) << bytes.error().line();
  auto folder = TempDir::create("/tmp", "cofferdam-elf-");
  ASSERT_TRUE(folder) << folder.error().line();
  const std::string path = folder->path() + "/broken";
  for (std::size_t size : {0U, 4U, 63U, 64U, 200U, 1000U}) {
    ASSERT_TRUE(write_file_atomic(path, bytes->substr(0, size), 0644));
    auto facts = read_elf(path);
    ASSERT_TRUE(facts);
    EXPECT_TRUE(facts->needed.empty()) << size;
  }
  for (std::size_t at = 16; at < 1024; at += 7) {
    std::string broken = *bytes;
    broken.replace(at, 8, 8, '\xFF');
    ASSERT_TRUE(write_file_atomic(path, broken, 0644));
    auto facts = read_elf(path);
    ASSERT_TRUE(facts) << at;
    EXPECT_LT(facts->needed.size(), 65536U);
  }
}

}  // namespace
}  // namespace cofferdam::sandbox
