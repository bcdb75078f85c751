#include "unit/handoff/lab.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "git/git.h"

namespace lab {

using cofferdam::Captured;
using cofferdam::SpawnOptions;
using cofferdam::TempDir;
using cofferdam::handoff::AttemptStore;

namespace {

constexpr cofferdam::UserIds kBoxUser{65533, 65533};

}  // namespace

Lab::Lab() : dir_(must(TempDir::create("/tmp", "cofferdam-lab-"))) {
  ::signal(SIGPIPE, SIG_IGN);  // as the product does
  if (::geteuid() == 0) {
    boxed_ = kBoxUser;
    ::chmod(dir_.path().c_str(), 0755);  // NOLINT: the boxed user must pass
  }
  must(cofferdam::make_dirs(at("home")));
}

std::string Lab::sh(const std::string& folder, const std::string& script) const {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.argv = {"sh", "-euc", script};
  options.cwd = folder;
  options.env = {"PATH=/usr/local/bin:/usr/bin:/bin",
                 "LC_ALL=C",
                 "HOME=" + at("home"),
                 "LAB=" + dir_.path(),
                 "GIT_CONFIG_NOSYSTEM=1",
                 "GIT_AUTHOR_NAME=User",
                 "GIT_AUTHOR_EMAIL=user@example.org",
                 "GIT_COMMITTER_NAME=User",
                 "GIT_COMMITTER_EMAIL=user@example.org",
                 "GIT_AUTHOR_DATE=@1700000000 +0000",
                 "GIT_COMMITTER_DATE=@1700000000 +0000"};
  Captured done = must(cofferdam::run_capture(options, "", {}));
  if (!done.status.success()) throw std::runtime_error(script + "\n" + done.out + done.err);
  return std::string(cofferdam::trim(done.out));
}

void Lab::make_source(const std::string& script, const std::string& object_format) {
  must(cofferdam::make_dirs(at("source"), 0755));
  sh(at("source"), "git init -q -b main --object-format=" + object_format);
  sh(at("source"), script);
  sh(at("source"), "git add -A && git commit -q --allow-empty -m base");
}

void Lab::prepare() {
  source = must(cofferdam::clone::open_source(at("source")));
  cofferdam::contract::CloneRequest request;
  request.repository = at("source");
  request.head = must(cofferdam::clone::resolve_commit(source));
  cloned = must(cofferdam::clone::clone_head(source, request, at("vault")));
  must(cofferdam::git::create_bare(at("metadata"), cloned.identity.object_format));
  const std::string tree = cloned.identity.tree;
  sh(dir_.path(),
     "cp " + cloned.packs.objects_dir +
         "/pack/* metadata/objects/pack/; mkdir work out scratch\n"
         "GIT_DIR=metadata GIT_INDEX_FILE=index0 git read-tree " +
         tree +
         "\nGIT_DIR=metadata GIT_WORK_TREE=work GIT_INDEX_FILE=$LAB/index0 git checkout-index -a\n"
         "cp -a source trusted; cp -a work work.kept; cp -a trusted trusted.kept; chmod -R a+rX metadata");
}

void Lab::reset() const {
  sh(dir_.path(), "rm -rf work trusted; cp -a work.kept work; cp -a trusted.kept trusted");
}

void Lab::edit(const std::string& script) const {
  sh(at("work"), script);
  sh(at("trusted"), script);
}

std::string Lab::trusted_tree() const {
  return sh(at("trusted"), "git add -A >/dev/null 2>&1; git write-tree");
}

std::string Lab::new_objects(const std::string& tree) const {
  return sh(at("trusted"), "printf '%s\\n' " + tree + " ^" + cloned.identity.tree +
                               " | git rev-list --objects --no-object-names --stdin | "
                               "sort -u | grep -vc 4b825dc642cb6eb9a060e54bf8d69288fbee4904 || true");
}

cofferdam::handoff::ScriptPaths Lab::paths() const {
  return {at("work"), at("metadata"), at("upper"), at("out"), at("scratch")};
}

Captured Lab::run_script(const std::vector<std::string>& argv, std::vector<cofferdam::FdMapping> fds) const {
  if (boxed_) sh(dir_.path(), "chown -Rh --from=0:0 65533:65533 work out scratch");
  SpawnOptions options;
  options.program = "/bin/sh";
  options.argv = argv;
  options.env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"};
  options.run_as = boxed_;
  options.fds = std::move(fds);
  return must(
      cofferdam::run_capture(options, "", {cofferdam::handoff::kMaxCollectRecord, std::chrono::minutes(2)}));
}

cofferdam::Result<cofferdam::handoff::Snapshot> Lab::snapshot(cofferdam::handoff::SnapshotInput input) const {
  input.base_tree = cloned.identity.tree;
  sh(dir_.path(), "rm -rf out scratch; mkdir out scratch");
  Captured done = run_script(cofferdam::handoff::snapshot_argv(input, paths()), {});
  if (!done.status.success())
    throw std::runtime_error("snapshot: " + done.status.describe() + "\n" + done.err);
  return cofferdam::handoff::decode_snapshot(done.out);
}

cofferdam::Result<cofferdam::handoff::Snapshot> Lab::overlay_snapshot(const std::string& edit,
                                                                      cofferdam::handoff::SnapshotInput input,
                                                                      bool trusted_too) const {
  if (trusted_too) sh(at("trusted"), edit);
  input.base_tree = cloned.identity.tree;
  input.overlay = true;
  sh(dir_.path(),
     "rm -rf out scratch lower over; mkdir -p out scratch over/up over/work over/merged; cp -a work.kept "
     "lower; mkdir "
     "-p lower/.git");
  if (boxed_) sh(dir_.path(), "chown -Rh 65533:65533 out scratch lower over");
  auto places = paths();
  places.work = at("over/merged");
  places.upper = at("over/up");
  // The rights that the mount takes are given up before anything else is done.
  const std::string script =
      "mount -t overlay overlay -o "
      "userxattr,lowerdir=$LAB/lower,upperdir=$LAB/over/up,workdir=$LAB/over/work "
      "$LAB/over/merged\n"
      "plain() { setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all \"$@\"; }\n"
      "cd $LAB/over/merged; plain /bin/sh -euc \"$EDIT\" > /dev/null; cd /; plain \"$@\"";
  SpawnOptions options;
  options.program = "/usr/bin/unshare";
  options.argv = {"unshare", "-Um", "--map-user=1000", "--map-group=1000", "--keep-caps", "/bin/sh", "-euc",
                  script,    "sh"};
  for (const std::string& arg : cofferdam::handoff::snapshot_argv(input, places)) options.argv.push_back(arg);
  options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent", "LC_ALL=C", "LAB=" + dir_.path(),
                 "EDIT=" + edit};
  options.run_as = boxed_;
  Captured done = must(
      cofferdam::run_capture(options, "", {cofferdam::handoff::kMaxCollectRecord, std::chrono::minutes(2)}));
  if (!done.status.success())
    throw std::runtime_error("snapshot: " + done.status.describe() + "\n" + done.err);
  return cofferdam::handoff::decode_snapshot(done.out);
}

cofferdam::Result<cofferdam::handoff::Collected> Lab::collect(const AttemptStore& store,
                                                              cofferdam::handoff::CollectInput input) const {
  input.base_tree = cloned.identity.tree;
  auto incoming = must(store.open_incoming());
  Captured done = run_script(cofferdam::handoff::collect_argv(input, paths()),
                             {{incoming.pack.get(), 3}, {incoming.index.get(), 4}});
  if (!done.status.success())
    throw std::runtime_error("collect: " + done.status.describe() + "\n" + done.err);
  auto collected = cofferdam::handoff::decode_collect(done.out);
  if (collected) must(store.adopt(std::move(incoming)));
  return collected;
}

AttemptStore Lab::make_store(const std::string& name) const {
  must(cofferdam::make_dirs(at("attempts")));
  return must(AttemptStore::create(at("attempts/" + name), cloned.identity, cloned.packs));
}

std::string Lab::commit_work(const AttemptStore& store) const {
  auto snapshot = must(this->snapshot());
  cofferdam::handoff::CollectInput input;
  input.tree = snapshot.tree;
  must(collect(store, input));
  cofferdam::handoff::CommitInput commit;
  commit.tree = snapshot.tree;
  commit.parent = cloned.identity.head;
  commit.author_name = "Cofferdam";
  commit.author_email = "cofferdam@localhost";
  commit.time.ms = 1'700'000'000'000;
  commit.message = "change\n";
  return must(store.commit(commit));
}

}  // namespace lab
