// Pinned images: made from a list and from archives, used as a box's root, refused once they are touched.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

constexpr std::size_t kMaxText = 4U << 20U;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Image : public EndToEnd {
 protected:
  // The list that is shipped, but for the lines that begin so.
  std::string shipped_list(const std::vector<std::string>& without) const {
    auto text = read_file(std::string(COFFERDAM_SOURCE_DIR) + "/images/debian12.lock", kMaxText);
    EXPECT_TRUE(text);
    std::string out;
    for (const std::string& line : split(*text, '\n')) {
      bool left_out = false;
      for (const std::string& start : without) left_out = left_out || starts_with(line, start);
      if (left_out) continue;
      out += line;
      out += '\n';
    }
    return out;
  }

  std::string list_path() const { return world().home() + "/list.lock"; }

  // Its id; empty when the test is over. A version that the archive no longer has is pinned anew, as the
  // message says.
  std::string build(const std::string& list) {
    world().write(list_path(), list);
    RunOutcome made = world().cofferdam({"image", "build", "--list", list_path()});
    if (made.status.code != 0 && has(made.err, "is no longer in the archive")) {
      const RunOutcome locked = world().cofferdam({"image", "lock", list_path()});
      EXPECT_EQ(locked.status.code, 0) << locked.err;
      made = world().cofferdam({"image", "build", "--list", list_path()});
    }
    if (made.status.code == 0) return std::string(trim(made.out));
    if (has(made.err, "apt-get") || has(made.err, "/usr/bin/apt")) {
      skip_or_fail("registry", "apt has no archive: " + made.err);
    } else {
      ADD_FAILURE() << made.err;
    }
    return {};
  }

  std::string tree_of(const std::string& id) const {
    return world().state() + "/images/" + id.substr(7) + "/tree";
  }

  std::string archive(const std::string& kind) const {
    std::string path = world().home() + "/" + kind + ".tar";
    const Captured made = world().as_user(
        {"/usr/bin/python3", "-B", std::string(COFFERDAM_SOURCE_DIR) + "/tests/unit/image/make_archive.py",
         kind, path});
    EXPECT_TRUE(made.status.success()) << made.err;
    return path;
  }

  static const contract::ControlFact& pinned_root(const RunOutcome& outcome) {
    static const contract::ControlFact none;
    for (const contract::ControlFact& one : outcome.result->controls) {
      if (one.name == "pinned-root") return one;
    }
    ADD_FAILURE() << "no control pinned-root";
    return none;
  }
};

// What the image does not have, and every host that runs these tests does.
constexpr const char* kHostOnly =
    "test -e /usr/bin/apt-get && echo apt; test -e /usr/share/man/man1 && echo manual; "
    "echo mounts; cat /proc/self/mountinfo";

TEST_P(Image, BuiltFromTheListItIsTheRootOfABox) {
  const std::string id = build(shipped_list({"agent ", "pinned "}));
  if (id.empty()) return;
  const RunOutcome inside = run_script(std::string(kHostOnly) +
                                           "; git --version; awk 'BEGIN { print 6 * 7 }'; python3 -c "
                                           "'print(\"snake\")'; stat -c %a /usr/bin/mount 2>&1; "
                                           "test -s /etc/ssl/certs/ca-certificates.crt && echo certificates; "
                                           "echo x > /usr/x || echo read-only",
                                       {"--image", id});
  ASSERT_EQ(inside.status.code, 0) << inside.err;
  const std::string text = printed(inside);
  EXPECT_EQ(text.find("apt\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("manual\n"), std::string::npos);
  for (const char* part : {"git version", "42\n", "snake\n", "certificates\n", "read-only\n"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  // No path of the host's, not the state folder's either.
  EXPECT_FALSE(has(text, world().root())) << text;
  EXPECT_FALSE(has(text, id.substr(7)));
  EXPECT_EQ(inside.result->image.kind, "image");
  EXPECT_EQ(inside.result->image.digest, id);
  EXPECT_TRUE(inside.result->image.pinned);
  EXPECT_TRUE(pinned_root(inside).enforced) << pinned_root(inside).proof;

  const RunOutcome host = run_script(kHostOnly);
  ASSERT_EQ(host.status.code, 0) << host.err;
  EXPECT_TRUE(has(printed(host), "apt\n")) << "the control: the host's /usr has it";
  EXPECT_EQ(host.result->image.kind, "host");
  EXPECT_EQ(host.result->image.digest, "");
  EXPECT_FALSE(host.result->image.pinned);
  EXPECT_FALSE(pinned_root(host).enforced);
  EXPECT_TRUE(has(pinned_root(host).proof, "the host's /usr"));

  // The configuration can ask for it, and can name one.
  world().write(world().config(), "[controls]\npinned-root = \"required\"\n");
  const RunOutcome refused = run_script("true", {"--config", world().config()});
  EXPECT_EQ(refused.status.code, 3);
  EXPECT_EQ(refused.result->cause.control, "pinned-root");
  world().write(world().config(),
                fmt::format("[controls]\npinned-root = \"required\"\n[box]\nimage = \"{}\"\n", id));
  const RunOutcome taken = run_script("echo x > new.txt", {"--config", world().config()});
  EXPECT_EQ(taken.status.code, 0) << taken.err;
  EXPECT_EQ(taken.result->image.digest, id);
  EXPECT_TRUE(taken.result->change.commit.has_value()) << "the boxes of the handoff are the host's";
  expect_clean();
}

TEST_P(Image, ClaudeOfTheImageWorksInIt) {
  if (!need_claude()) return;
  const std::string id = build(shipped_list({"agent @openai", "pinned @openai"}));
  if (id.empty()) return;
  use_standin(script_file("edit-and-run.json"));
  // The agents of the host are not looked at.
  mutable_world().extra_env.emplace_back("COFFERDAM_AGENTS_DIR=" + world().home());
  const RunOutcome outcome =
      world().cofferdam({"run", "--json", "--config", world().config(), "--model", "claude-sonnet-5",
                         "--image", id, "--attempt-id", "pinned", "Greet the world"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.result->image.pinned);
  EXPECT_TRUE(has(world().git({"show", "cofferdam/pinned:README.md"}), "Hello, world"));
  const RunOutcome host = world().cofferdam(
      {"run", "--json", "--config", world().config(), "--model", "claude-sonnet-5", "Greet the world"});
  EXPECT_NE(host.status.code, 0) << "the control: there is no agent beside the one in the image";
}

TEST_P(Image, AVersionThatIsGoneIsNamed) {
  std::string list = shipped_list({"agent ", "pinned ", "package bash "});
  list += "package bash 0.1-1 amd64 " + std::string(64, '0') + "\n";
  world().write(list_path(), list);
  const RunOutcome made = world().cofferdam({"image", "build", "--list", list_path()});
  if (has(made.err, "update failed")) return skip_or_fail("registry", made.err);
  EXPECT_EQ(made.status.code, 2) << made.err;
  EXPECT_TRUE(has(made.err, "bash 0.1-1 is no longer in the archive, which has 5")) << made.err;
}

TEST_P(Image, APackageOfAnotherDigestIsNotOpened) {
  const std::string shipped = shipped_list({"agent ", "pinned ", "want ", "without "});
  std::string list = "cofferdam-image-lock/1\n";
  for (const std::string& line : split(shipped, '\n')) {
    if (starts_with(line, "package sed "))
      list += line.substr(0, line.size() - 64) + std::string(64, 'a') + "\n";
  }
  world().write(list_path(), list);
  const RunOutcome made = world().cofferdam({"image", "build", "--list", list_path()});
  if (has(made.err, "update failed") || has(made.err, "no longer in"))
    return skip_or_fail("registry", made.err);
  EXPECT_EQ(made.status.code, 3) << made.err;
  EXPECT_TRUE(has(made.err, "is another file than the one in the list")) << made.err;
  EXPECT_TRUE(list_dir(world().state() + "/images")->empty());
}

TEST_P(Image, ImportedOneIsListedVerifiedAndRemoved) {
  for (const char* kind : {"docker", "oci"}) {
    SCOPED_TRACE(kind);
    const RunOutcome made = world().cofferdam({"image", "import", "--json", archive(kind)});
    ASSERT_EQ(made.status.code, 0) << made.err;
    EXPECT_TRUE(has(made.out, "\"dropped\":2")) << made.out;
    const RunOutcome list = world().cofferdam({"image", "list", "--json"});
    auto json = contract::parse_json(list.out, kMaxText);
    ASSERT_TRUE(json && json->size() == 1) << list.out;
    const std::string id = (*json)[0].value("id", "");
    EXPECT_TRUE(has(made.out, id));
    EXPECT_EQ((*json)[0].value("from", ""), fmt::format("import of {}.tar", kind));
    EXPECT_TRUE(has(world().cofferdam({"df", "--json"}).out, id));
    EXPECT_EQ(world().cofferdam({"image", "verify"}).status.code, 0);
    EXPECT_EQ(world().as_user({"/usr/bin/cat", tree_of(id) + "/usr/bin/tool"}).out, "one\n");
    EXPECT_EQ(world().cofferdam({"image", "remove", id.substr(7, 12)}).status.code, 0);
    EXPECT_EQ(world().cofferdam({"image", "list", "--json"}).out, "[]\n");
  }
  EXPECT_TRUE(list_dir(world().state() + "/images")->empty());
  expect_clean();
}

TEST_P(Image, HostileArchivesLeaveNothing) {
  const std::string outside = world().fingerprint(world().home());
  for (const char* kind :
       {"parent", "through-link", "huge", "docker-wrong-layer", "oci-wrong-blob", "noise"}) {
    SCOPED_TRACE(kind);
    const std::string path = archive(kind);
    const RunOutcome made = world().cofferdam({"image", "import", path});
    EXPECT_EQ(made.status.code, 3) << made.err;
    EXPECT_TRUE(has(made.err, "the archive is refused")) << made.err;
    ::unlink(path.c_str());
    EXPECT_TRUE(list_dir(world().state() + "/images")->empty());
  }
  EXPECT_EQ(world().fingerprint(world().home()), outside);
  expect_clean();
}

TEST_P(Image, OneChangedByteIsRefused) {
  const RunOutcome made = world().cofferdam({"image", "import", archive("docker")});
  ASSERT_EQ(made.status.code, 0) << made.err;
  const std::string id(trim(made.out));
  const std::string file = tree_of(id) + "/usr/bin/tool";
  struct stat before {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  {
    const UniqueFd opened = *open_file(file, O_WRONLY);
    ASSERT_EQ(::pwrite(opened.get(), "X", 1, 0), 1);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::futimens(opened.get(), times), 0);
  }
  const RunOutcome refused =
      world().cofferdam({"run", "--json", "--image", id, "--agent", "command", "--", "/usr/bin/tool"});
  EXPECT_EQ(refused.status.code, 3) << refused.err;
  EXPECT_FALSE(refused.result.has_value()) << "nothing was started";
  EXPECT_TRUE(has(refused.err, "is not what it was made as: usr/bin/tool")) << refused.err;
  const RunOutcome verified = world().cofferdam({"image", "verify", id});
  EXPECT_EQ(verified.status.code, 1);
  EXPECT_TRUE(has(verified.err, "usr/bin/tool")) << verified.err;
}

TEST_P(Image, ThatIsNotThereIsNamed) {
  const std::string id = "sha256:" + std::string(64, '0');
  const RunOutcome refused =
      world().cofferdam({"run", "--json", "--image", id, "--agent", "command", "--", "/bin/true"});
  EXPECT_EQ(refused.status.code, 2) << refused.err;
  EXPECT_TRUE(has(refused.err, "there is no image " + id)) << refused.err;
  EXPECT_EQ(world().cofferdam({"image", "remove", "../.."}).status.code, 2);
}

COFFERDAM_FOR_BOTH_USERS(Image);

}  // namespace
}  // namespace cofferdam::test
