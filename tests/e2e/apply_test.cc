// `cofferdam apply`: the work of an attempt comes onto the branch that is checked out, or nothing at all
// happens. attacks.md A11, B3, B6, B7, B8, B10 and G9.
#include "base/text.h"
#include "contract/json.h"
#include "e2e/applying.h"
#include "handoff/place.h"

namespace cofferdam::test {
namespace {

TEST_P(Apply, FastForwardsAndCanBeUndone) {
  const std::string head = world().git({"rev-parse", "HEAD"});
  attempt(
      "printf 'beta\\n' >> src/a.txt; mkdir -p d/e; printf '#!/bin/sh\\n' > d/e/run; chmod 755 d/e/run;"
      "ln -s e/run d/link; rm README.md; printf 'x' > \"$(printf 'odd\\nname\\033[31m')\"");

  RunOutcome dry = apply({"--dry-run"});
  EXPECT_EQ(dry.status.code, 0) << dry.err;
  EXPECT_EQ(world().git({"rev-parse", "HEAD"}), head);
  EXPECT_EQ(status(), "");

  RunOutcome outcome = apply();

  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.out.find("(fast-forward)"), std::string::npos) << outcome.out;
  EXPECT_EQ(world().git({"rev-parse", "HEAD"}), commit);
  EXPECT_EQ(world().git({"symbolic-ref", "--short", "HEAD"}), "main");
  EXPECT_EQ(status(), "");
  EXPECT_EQ(said("cat src/a.txt; test -x d/e/run; readlink d/link; test ! -e README.md"),
            "alpha\nbeta\ne/run");
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
  EXPECT_FALSE(exists(world().repo() + "/.git/cofferdam-apply"));
  EXPECT_FALSE(exists(world().repo() + "/.git/index.lock"));
  // The reflogs that there were go on.
  EXPECT_EQ(said("git reflog -1 --format=%gs"), "cofferdam apply work: fast-forward");

  RunOutcome again = apply();
  EXPECT_EQ(again.status.code, 0) << again.err;
  EXPECT_NE(again.out.find("already"), std::string::npos) << again.out;

  sh("git reset -q --keep " + head);
  EXPECT_EQ(said("git status --porcelain; cat README.md src/a.txt"), "# Sample\n\nHello\nalpha");
}

// What was not published is in the attempt's own store.
TEST_P(Apply, TakesWorkThatWasNotPublished) {
  attempt("printf 'beta\\n' >> src/a.txt; exit 1");
  EXPECT_EQ(said("git for-each-ref refs/heads/cofferdam"), "");
  RunOutcome outcome = apply({"--json"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  auto json = contract::parse_json(trim(outcome.out), 1U << 20U);
  ASSERT_TRUE(json) << outcome.out;
  EXPECT_EQ((*json)["applied"], true);
  EXPECT_EQ((*json)["kind"], "fast-forward");
  EXPECT_EQ((*json)["branch"], "refs/heads/main");
  EXPECT_EQ((*json)["to"], world().git({"rev-parse", "HEAD"}));
  EXPECT_EQ((*json)["files"][0]["path"], "src/a.txt");
  EXPECT_EQ(said("git status --porcelain; cat src/a.txt"), "alpha\nbeta");
}

TEST_P(Apply, MergesWhatBothChanged) {
  world().commit({{"src/b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}}, "numbers");
  attempt("sed -i s/9/nine/ src/b.txt; echo new > n.txt");
  sh("sed -i s/1/one/ src/b.txt; echo mine > m.txt; git add -A; git commit -qm mine");
  const std::string mine = world().git({"rev-parse", "HEAD"});

  RunOutcome outcome = apply();

  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("(merge)"), std::string::npos) << outcome.out;
  EXPECT_EQ(world().git({"rev-parse", "HEAD^1", "HEAD^2"}), mine + "\n" + commit);
  EXPECT_EQ(said("git status --porcelain; tr '\\n' ' ' < src/b.txt; cat n.txt m.txt"),
            "one 2 3 4 5 6 7 8 nine new\nmine");
  EXPECT_EQ(world().git({"log", "-1", "--format=%an <%ae> %cn"}),
            "Cofferdam <cofferdam@localhost> Cofferdam");
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
}

TEST_P(Apply, ConflictsAreListedAndNothingIsTouched) {
  attempt("echo theirs > src/a.txt; echo t > README.md; echo fine > f.txt");
  sh("echo mine > src/a.txt; git rm -q README.md; git add -A; git commit -qm mine");
  const std::string before = state_of_repository();

  RunOutcome outcome = apply();

  EXPECT_EQ(outcome.status.code, 3) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("conflict     src/a.txt: CONFLICT (contents)"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("README.md: CONFLICT (modify/delete)"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("f.txt"), std::string::npos) << outcome.out;
  EXPECT_EQ(state_of_repository(), before);
  // The control: plain git is in the middle of something now.
  sh("! git merge -q cofferdam/work > /dev/null 2>&1; test -e .git/MERGE_HEAD; git merge --abort");
}

TEST_P(Apply, UncommittedFilesAreKeptOrStopIt) {
  attempt("echo theirs >> src/a.txt; echo new > n.txt; mkdir q; echo q > q/r");
  sh("echo dirty >> README.md; echo staged > s.txt; git add s.txt; echo loose > loose.txt");
  const struct {
    const char* plant;
    const char* mend;
    const char* says;
  } cases[] = {
      {"echo dirty >> src/a.txt", "git checkout -q src/a.txt", "dirty        src/a.txt"},
      {"rm src/a.txt", "git checkout -q src/a.txt", "dirty        src/a.txt"},
      {"chmod +x src/a.txt", "chmod -x src/a.txt", "dirty        src/a.txt"},
      {"echo untracked > n.txt", "rm n.txt", "dirty        n.txt"},
      {"mkdir n.txt", "rmdir n.txt", "dirty        n.txt"},
      {"mkfifo n.txt", "rm n.txt", "dirty        n.txt"},
      {"git update-index --cacheinfo 100644,$(git rev-parse HEAD:README.md),src/a.txt",
       "git update-index --cacheinfo 100644,$(git rev-parse HEAD:src/a.txt),src/a.txt",
       "staged       src/a.txt"},
      {"git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:README.md),n.txt/deep",
       "git update-index --force-remove n.txt/deep", "staged       n.txt/deep"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.plant);
    sh(one.plant);
    const std::string before = state_of_repository();
    RunOutcome outcome = apply();
    EXPECT_EQ(outcome.status.code, 3) << outcome.err << outcome.out;
    EXPECT_NE(outcome.out.find(one.says), std::string::npos) << outcome.out << outcome.err;
    EXPECT_EQ(state_of_repository(), before);
    sh(one.mend);
  }
  // What is not in the way stays as it is.
  RunOutcome outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(said("git status --porcelain | tr ' ' _ | sort"), "??_loose.txt\nA__s.txt\n_M_README.md");
  EXPECT_EQ(said("tail -1 src/a.txt; cat q/r"), "theirs\nq");
}

TEST_P(Apply, StopsInTheMiddleOfSomethingElse) {
  attempt("echo theirs >> src/a.txt");
  for (const char* name : {".git/MERGE_HEAD", ".git/rebase-apply", ".git/index.lock"}) {
    SCOPED_TRACE(name);
    sh(std::string("cp .git/HEAD ") + name);
    const std::string before = state_of_repository();
    RunOutcome outcome = apply();
    EXPECT_EQ(outcome.status.code, 3) << outcome.err << outcome.out;
    EXPECT_EQ(said("cat src/a.txt; ls -A .git | grep -c cofferdam || true"), "alpha\n0");
    sh(std::string("rm ") + name);
  }
  EXPECT_EQ(apply().status.code, 0);  // the control
}

// attacks.md A11 and G9: files that are orders to some program stop it, each by its own name.
TEST_P(Apply, StopsAtFilesThatSomeProgramFollows) {
  sh("git config core.hooksPath tools/checks; mkdir -p tools/checks; echo 'exit 0' > tools/checks/pre-commit;"
     "git add -A; git -c core.hooksPath=/dev/null commit -qm hooks");
  attempt(
      "echo '*.txt eol=crlf' > .gitattributes; mkdir -p .github/workflows .claude;"
      "echo x > .github/workflows/ci.yml; echo '{}' > .claude/settings.json; echo evil >> "
      "tools/checks/pre-commit;"
      "ln -s /etc/passwd out; ln -s ../src/a.txt src/in; ln -s .git/hooks h; echo plain > p.md");
  const std::string before = state_of_repository();

  RunOutcome outcome = apply();

  EXPECT_EQ(outcome.status.code, 3) << outcome.err << outcome.out;
  for (const char* line : {"attributes   .gitattributes: ", "ci           .github/workflows/ci.yml: ",
                           "agent-config .claude/settings.json: ", "hook         tools/checks/pre-commit: ",
                           "link         out: ", "link         h: "}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("p.md"), std::string::npos);
  EXPECT_EQ(outcome.out.find("src/in"), std::string::npos);
  EXPECT_EQ(state_of_repository(), before);

  RunOutcome half = apply({"--accept", ".gitattributes", "--accept", ".github"});
  EXPECT_EQ(half.status.code, 3);
  EXPECT_EQ(half.out.find("ci.yml"), std::string::npos) << half.out;
  EXPECT_NE(half.out.find(".claude/settings.json"), std::string::npos) << half.out;
  EXPECT_EQ(state_of_repository(), before);

  RunOutcome all =
      apply({"--accept", ".gitattributes", "--accept", ".github/", "--accept", ".claude/settings.json",
             "--accept", "tools/checks/pre-commit", "--accept", "out", "--accept", "h"});
  ASSERT_EQ(all.status.code, 0) << all.err << all.out;
  EXPECT_EQ(world().git({"rev-parse", "HEAD"}), commit);
  EXPECT_EQ(said("readlink out"), "/etc/passwd");
}

// Conversions that git itself makes are made, as a checkout would.
TEST_P(Apply, WritesTextAsACheckoutDoes) {
  world().commit(
      {{".gitattributes", "*.txt text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE-BOM\n"}},
      "attributes");
  sh("rm src/a.txt; git checkout -q src/a.txt; printf 'alpha\\r\\n' | cmp - src/a.txt");
  attempt(
      "printf 'beta\\r\\n' >> src/a.txt; printf '$Id$\\n' > x.id; printf '\\377\\376h\\000i\\000' > w.u16");
  RunOutcome outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  sh("printf 'alpha\\r\\nbeta\\r\\n' | cmp - src/a.txt; printf '\\377\\376h\\000i\\000' | cmp - w.u16;"
     "grep -q 'Id: ' x.id; git add --renormalize .; git diff --cached --quiet HEAD");
  EXPECT_EQ(status(), "");
}

struct Trap {
  const char* name;
  const char* plant;
  const char* control;
};

// Nothing of the user's own programs runs while a change of an agent's is applied (attacks.md G9, A7-A9),
// with plain git as the control.
TEST_P(Apply, RunsNothingOfTheRepositorys) {
  const std::string mark = world().home() + "/mark";
  sh("cat > ../home/mark.sh <<'EOS'\n#!/bin/sh\ntouch \"" + mark + "\"\ncat\nEOS\nchmod 755 ../home/mark.sh");
  const std::string program = world().home() + "/mark.sh";
  world().commit({{".gitattributes", "*.f filter=evil\n*.m merge=evil\n*.d diff=evil\n"},
                  {"x.m", "1\n2\n3\n"},
                  {"x.d", "d\n"},
                  {"tracked/post-checkout", "#!/bin/sh\ntouch \"" + mark + "\"\n"}},
                 "traps");
  sh("chmod +x tracked/post-checkout; git add -A; git commit -qm executable");
  attempt("printf '1\\n2\\nthree\\n' > x.m; echo D > x.d; echo new > n.txt; echo f > y.f");
  sh("printf 'one\\n2\\n3\\n' > x.m; git add -A; git commit -qm mine; git branch control");
  const Trap traps[] = {
      {"smudge", "git config filter.evil.smudge \"$P\"", "git merge -q $C"},
      {"clean", "git config filter.evil.clean \"$P\"", "echo z > z.f; git add z.f"},
      {"process", "git config filter.evil.process \"$P\"", "git merge -q $C"},
      {"merge", "git config merge.evil.driver \"$P < %A > %P\"", "git merge -q $C"},
      {"textconv", "git config diff.evil.textconv \"$P <\"", "echo e >> x.d; git diff"},
      {"command", "git config diff.evil.command \"$P\"", "echo e >> x.d; git diff"},
      {"fsmonitor", "git config core.fsmonitor \"$P; false\"", "git status"},
      {"hooks_path", "git config core.hooksPath tracked", "git checkout -q -b other"},
      {"hook_reference", "cp \"$P\" .git/hooks/reference-transaction", "git branch other"},
      {"hook_index", "cp \"$P\" .git/hooks/post-index-change", "git merge -q $C"},
      {"hook_merge", "cp \"$P\" .git/hooks/post-merge", "git merge -q $C"},
      {"hook_commit", "cp \"$P\" .git/hooks/pre-merge-commit", "git merge -q $C"},
      {"signature", "git config gpg.program \"$P\"; git config commit.gpgSign true", "git merge -q $C"},
  };
  sh("cp -a ../repo ../home/kept");
  for (const Trap& trap : traps) {
    SCOPED_TRACE(trap.name);
    sh("find . -mindepth 1 -delete; cp -a ../home/kept/. .; P=" + program + "\n" + trap.plant + "\nrm -f " +
       mark);
    RunOutcome stopped = apply();
    EXPECT_EQ(stopped.status.code, 3) << stopped.out << stopped.err;
    EXPECT_NE(stopped.out.find("filter       y.f: filter=evil is not run"), std::string::npos) << stopped.out;
    EXPECT_NE(stopped.out.find("x.m: both changed it, and merge=evil is not run"), std::string::npos)
        << stopped.out;
    sh("printf '1\\n2\\n3\\n' > x.m; git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c "
       "commit.gpgSign=false "
       "commit -qam back; rm -f " +
       mark);
    RunOutcome outcome = apply({"--accept", "y.f"});
    ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("filter=evil was not run"), std::string::npos) << outcome.out;
    EXPECT_FALSE(exists(mark));
    EXPECT_EQ(said("cat n.txt y.f"), "new\nf");
    sh("find . -mindepth 1 -delete; cp -a ../home/kept/. .; P=" + program + "\n" + trap.plant + "\nrm -f " +
       mark);
    const Captured control = world().as_user(
        {"/bin/sh", "-c",
         "cd \"$1\"; C=" + commit + "; export GIT_ALTERNATE_OBJECT_DIRECTORIES=" + world().state() +
             "/attempts/work/store.git/objects; (" + std::string(trap.control) + ") >/dev/null 2>&1",
         "sh", world().repo()});
    (void)control;
    EXPECT_TRUE(exists(mark)) << "the control did not fire";
  }
}

// What LFS would need is said.
TEST_P(Apply, SaysWhatLfsWouldNeed) {
  world().commit({{".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"}}, "lfs");
  attempt("printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 3\\n' 1 > x.bin");
  RunOutcome stopped = apply();
  EXPECT_EQ(stopped.status.code, 3);
  EXPECT_NE(stopped.out.find("the pointer of LFS"), std::string::npos) << stopped.out;
  RunOutcome outcome = apply({"--accept", "x.bin"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("git lfs pull"), std::string::npos) << outcome.out;
  EXPECT_EQ(said("head -1 x.bin"), "version https://git-lfs.github.com/spec/v1");
}

// attacks.md B6-B8, B10: links and hard links in the user's work tree lead nowhere.
TEST_P(Apply, WritesThroughNoLink) {
  attempt("echo theirs >> src/a.txt; mkdir new; echo n > new/file; rm README.md");
  const std::string outside = world().root() + "/home/outside";
  sh("mkdir " + outside + "; cp src/a.txt " + outside + "/a.txt; echo secret > " + outside + "/secret");
  const std::string kept = world().fingerprint(outside);
  // The folder of a tracked file became a link to one with the same file in it.
  sh("mv src src.away; ln -s " + outside + " src");
  RunOutcome outcome = apply();
  EXPECT_EQ(outcome.status.code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("src/a.txt"), std::string::npos) << outcome.out;
  sh("rm src; mv src.away src");
  // The folder of a new file is a link.
  sh("ln -s " + outside + " new");
  outcome = apply();
  EXPECT_NE(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(said("git status --porcelain; cat src/a.txt"), "?? new\nalpha");
  sh("rm new");
  EXPECT_EQ(world().fingerprint(outside), kept);
  // A tracked file that is a hard link to another one: that one stays as it is.
  sh("ln -f src/a.txt " + outside + "/hard; ln " + outside + "/secret " + outside + "/secret2");
  outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(said("cat " + outside + "/hard; tail -1 src/a.txt; cat new/file"), "alpha\ntheirs\nn");
}

TEST_P(Apply, FoldersAndFilesChangePlaces) {
  sh("mkdir -p was/folder; echo x > was/folder/x; echo f > was-file; echo l > l; git add -A; git commit -qm "
     "shapes");
  attempt("rm -r was; echo now > was; rm was-file; mkdir was-file; echo y > was-file/y; rm l; ln -s was l");
  sh("echo loose > was/folder/loose");
  const std::string before = state_of_repository();
  RunOutcome outcome = apply();
  EXPECT_NE(outcome.status.code, 0) << "an untracked file is in the way";
  EXPECT_EQ(said("git status --porcelain"), "?? was/folder/loose");
  sh("rm was/folder/loose");
  outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(said("git status --porcelain; cat was was-file/y; readlink l"), "now\ny\nwas");
}

TEST_P(Apply, ADetachedHeadMovesAlone) {
  attempt("echo theirs >> src/a.txt");
  const std::string main = world().git({"rev-parse", "main"});
  sh("git checkout -q --detach");
  RunOutcome outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(world().git({"rev-parse", "main"}), main);
  EXPECT_EQ(world().git({"rev-parse", "HEAD"}), commit);
}

TEST_P(Apply, SaysWhatCannotBeApplied) {
  RunOutcome nothing = run_script("true", {"--attempt-id", "idle"});
  RunOutcome outcome = apply({}, "idle");
  EXPECT_EQ(outcome.status.code, 3);
  EXPECT_NE(outcome.err.find("left no change"), std::string::npos) << outcome.err;
  EXPECT_EQ(apply({}, "nobody").status.code, 2);
  attempt("echo theirs >> src/a.txt");
  sh("git init -q ../home/other; cd ../home/other; git -c user.name=x -c user.email=x@x commit -q "
     "--allow-empty -m x");
  outcome = apply({"--repo", world().home() + "/other"});
  EXPECT_EQ(outcome.status.code, 2);
  EXPECT_NE(outcome.err.find("was for"), std::string::npos) << outcome.err;
  EXPECT_EQ(world().cofferdam({"discard", "work"}).status.code, 0);
  outcome = apply();
  EXPECT_EQ(outcome.status.code, 2);
  EXPECT_NE(outcome.err.find("was discarded"), std::string::npos) << outcome.err;
}

// Work that could not be published stays, says how, and is published by that very command.
TEST_P(Apply, WhatCouldNotBePublishedIsPublishedLater) {
  sh("mkdir -p .git/refs/heads/cofferdam; ln -s ../../../../elsewhere .git/refs/heads/cofferdam/work");
  const std::string objects = said("find .git/objects | sort");
  RunOutcome outcome = run_script("echo new > n.txt", {"--attempt-id", "work", "--repo", world().repo()});
  EXPECT_EQ(outcome.status.code, 1) << outcome.err;
  EXPECT_EQ(outcome.result->publication.state, "failed");
  EXPECT_NE(outcome.result->publication.reason.find("symbolic link"), std::string::npos);
  EXPECT_NE(outcome.result->publication.reason.find("cofferdam recover"), std::string::npos);
  EXPECT_EQ(said("find .git/objects | sort"), objects);
  EXPECT_FALSE(exists(world().root() + "/elsewhere"));
  sh("rm .git/refs/heads/cofferdam/work");
  RunOutcome recovered = world().cofferdam({"recover"});
  EXPECT_EQ(recovered.status.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("published refs/heads/cofferdam/work"), std::string::npos) << recovered.out;
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/work"}), outcome.result->change.commit.value_or(""));
}

// What a killed application left, as the kill found it: the old file taken away, the new one there.
TEST_P(Apply, ABrokenOffApplicationIsMendedByARecovery) {
  attempt("echo theirs > src/a.txt");
  handoff::Placement plan;
  plan.attempt_id = "work";
  plan.git_dir = world().repo() + "/.git";
  plan.work_tree = world().repo();
  plan.branch = "refs/heads/main";
  plan.old_head = world().git({"rev-parse", "HEAD"});
  plan.new_head = commit;
  plan.files.push_back({"src/a.txt",
                        handoff::PlaceKind::file,
                        0,
                        7,
                        "100644",
                        std::string(40, '1'),
                        handoff::fingerprint(handoff::PlaceKind::file, "theirs\n"),
                        {},
                        {}});
  sh("mkdir -p .git/cofferdam-apply/new .git/cofferdam-apply/old; mv src/a.txt .git/cofferdam-apply/old/0;"
     "echo theirs > src/a.txt; : > .git/cofferdam-apply/index-lock;"
     "ln .git/cofferdam-apply/index-lock .git/index.lock");
  world().write(plan.git_dir + "/cofferdam-apply/plan", handoff::encode_placement(plan));
  world().write(world().state() + "/attempts/work/applying", world().repo(), 0600);
  EXPECT_EQ(said("cat src/a.txt"), "theirs");  // the control
  RunOutcome recovered = world().cofferdam({"recover"});
  EXPECT_EQ(recovered.status.code, 0) << recovered.err;
  EXPECT_EQ(said("git status --porcelain; cat src/a.txt; ls -A .git | grep -c 'cofferdam-apply\\|index.lock' "
                 "|| true"),
            "alpha\n0");
  EXPECT_FALSE(exists(world().state() + "/attempts/work/applying"));
  EXPECT_EQ(apply().status.code, 0);
}

// In a linked work tree and in a submodule HEAD, index and locks are elsewhere than the objects (attacks.md
// A10). What is around it stays as it is.
TEST_P(Apply, WorksInALinkedWorkTreeAndInASubmodule) {
  const struct {
    const char* id;
    const char* make;
    const char* place;
    const char* around;
  } cases[] = {
      {"linked", "git worktree add -q -b topic ../home/linked", "/linked",
       "git rev-parse HEAD; git status --porcelain"},
      {"submodule",
       "cd ../home; git init -q super; cd super; git -c protocol.file.allow=always submodule --quiet add "
       "$PWD/../../repo sub; git -c user.name=x -c user.email=x@x commit -qm sub; git -C sub config "
       "user.name x; "
       "git -C sub config user.email x@x",
       "/super/sub", "cd ../home/super; git rev-parse HEAD; git diff --cached"},
  };
  for (const auto& [id, make, name, around] : cases) {
    SCOPED_TRACE(id);
    sh(make);
    const std::string place = world().home() + name;
    const auto there = [&](const std::string& script) { return said("cd " + place + "; " + script); };
    RunOutcome outcome = run_script("echo theirs >> src/a.txt; mkdir n; echo n > n/n; rm README.md",
                                    {"--attempt-id", id, "--repo", place});
    ASSERT_TRUE(outcome.result->change.commit.has_value()) << outcome.err;
    const std::string before = said(around);
    const std::string old = there("git rev-parse HEAD");

    // Stopped by the lock of its own index, and not by another's.
    there("touch $(git rev-parse --git-dir)/index.lock");
    EXPECT_EQ(apply({"--repo", place}, id).status.code, 3);
    EXPECT_EQ(there("rm $(git rev-parse --git-dir)/index.lock; git status --porcelain"), "");
    RunOutcome applied = apply({"--repo", place}, id);
    ASSERT_EQ(applied.status.code, 0) << applied.err << applied.out;
    EXPECT_EQ(there("git rev-parse HEAD; git status --porcelain"), *outcome.result->change.commit);
    EXPECT_EQ(there("cat src/a.txt n/n; test ! -e README.md"), "alpha\ntheirs\nn");
    EXPECT_EQ(said(around), before);
    EXPECT_EQ(
        there(
            "git fsck --strict 2>&1; ls -A $(git rev-parse --git-dir) | grep -c 'cofferdam\\|lock' || true"),
        "0");
    there("git reset -q --keep " + old + "; test -e README.md");

    // Also a merge.
    there("echo mine > m.txt; git add -A; git commit -qm mine");
    applied = apply({"--repo", place}, id);
    ASSERT_EQ(applied.status.code, 0) << applied.err << applied.out;
    EXPECT_EQ(there("git rev-parse HEAD^2; git status --porcelain"), *outcome.result->change.commit);
    EXPECT_EQ(there("cat m.txt n/n"), "mine\nn");
    EXPECT_EQ(said(around), before);
  }
}

// Root works as the owner of the repository: everything that is new is the owner's.
TEST_P(Apply, RootWorksAsTheOwner) {
  const bool as_root = user() == User::root;  // the other one owns the repository itself
  if (as_root) sh("chown -R 12345:23456 .; chmod 2775 src; git config --global --add safe.directory '*'");
  attempt("echo theirs >> src/a.txt; mkdir n; echo n > n/n; echo b > src/b.txt");
  RunOutcome outcome = apply();
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(said(as_root ? "find . ! -user 12345" : "find . ! -user $(id -u)"), "");
  EXPECT_EQ(status(), "");
  if (as_root) {
    EXPECT_EQ(said("stat -c %g src/b.txt"), "23456");
  }
}

COFFERDAM_FOR_BOTH_USERS(Apply);

}  // namespace
}  // namespace cofferdam::test
