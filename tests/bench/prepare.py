#!/usr/bin/env python3
"""What it takes to have a private work tree of a head: ./bench prepare, docs/benchmarks.md.

  prepare.py --build DIR [--files N] [--tree DIR] [--tries N] [--json FILE]    the figures
  prepare.py --build DIR --smoke                                               a few files, once; figures do not count
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FILES_PER_FOLDER = 25
CHANGED = 20  # files that the second attempt writes to


def git(repo, *args, **more):
    identity = ["-c", "user.name=Bench", "-c", "user.email=bench@localhost"]
    return subprocess.run(["git", "-C", repo, *identity, *args], check=True, stdout=subprocess.PIPE, **more)


def generate(repo, files):
    """A repository of that many text files of 1 to 6 kB, in folders two deep, by git's fast-import."""
    random.seed(5)
    lines = [f"line {i} of a file that somebody wrote\n" for i in range(200)]
    stream = [b"commit refs/heads/main\ncommitter Bench <bench@localhost> 1700000000 +0000\ndata 5\nfirst\n"]
    for number in range(files):
        folder = number // FILES_PER_FOLDER
        text = f"file {number}\n" + "".join(random.choices(lines, k=random.randint(25, 150)))
        data = text.encode()
        name = f"part{folder % 50:02d}/folder{folder:05d}/file{number:06d}.txt"
        stream.append(f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "fast-import", "--quiet", input=b"".join(stream))
    git(repo, "reset", "-q", "--hard")


def adopt(repo, tree):
    """A repository of one commit of a folder of this host."""
    shutil.copytree(tree, repo, symlinks=True, ignore_dangling_symlinks=True, dirs_exist_ok=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "first")


def timed(act):
    begin = time.monotonic()
    act()
    return (time.monotonic() - begin) * 1000


def rivals(repo, folder, tries):
    """Median milliseconds of what else makes a tree, each into a new folder that goes again."""
    commands = {
        "git clone --no-hardlinks": lambda to: ["git", "clone", "-q", "--no-hardlinks", repo, to],
        "git clone --shared": lambda to: ["git", "clone", "-q", "--shared", repo, to],
        "git worktree add": lambda to: ["git", "-C", repo, "worktree", "add", "-q", "--detach", to],
        "cp -a": lambda to: ["cp", "-a", repo, to],
    }
    figures = {}
    for name, command in commands.items():
        times = []
        for number in range(tries):
            target = os.path.join(folder, f"rival-{number}")
            times.append(timed(lambda: subprocess.run(command(target), check=True)))
            shutil.rmtree(target)
        git(repo, "worktree", "prune")
        figures[name] = statistics.median(times)
    return figures


class Product:
    """Attempts with the real program, in a state folder of their own."""

    def __init__(self, build, repo, folder):
        self.program = str(pathlib.Path(build).resolve() / "cofferdam")
        self.repo = repo
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "COFFERDAM_STATE_DIR": os.path.join(folder, "state")}

    def run(self, *args):
        return subprocess.run([self.program, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def attempt(self, script):
        """Result, milliseconds of each step by its event (of the handoff: since `settled`), and what the script printed."""
        out = self.run("run", "--json", "--repo", self.repo, "--agent", "command", "--", "/bin/sh", "-c", script)
        result = json.loads(out.strip().split("\n")[-1])
        at = {}
        for line in self.run("log", "--json", result["attempt_id"]).strip().split("\n"):
            event = json.loads(line)
            if "type" in event:
                at[event["type"]] = datetime.datetime.fromisoformat(event["at"].replace("Z", "+00:00"))
        printed = pathlib.Path(self.env["COFFERDAM_STATE_DIR"], "attempts", result["attempt_id"], "stdout")
        steps = {
            "clone": (at["cloned"] - at["admitted"]).total_seconds() * 1000,
            "workspace": (at["workspace-ready"] - at["cloned"]).total_seconds() * 1000,
            "box": (at["box-ready"] - at["workspace-ready"]).total_seconds() * 1000,
        }
        for event in ("snapshot", "committed", "published"):
            if event in at:
                steps[event] = (at[event] - at["settled"]).total_seconds() * 1000
        return result, steps, printed.read_text(encoding="utf-8") if printed.exists() else ""


STATUS = "a=$(date +%s%N); git status --porcelain > /dev/null; b=$(date +%s%N); echo $(((b - a) / 1000))"
# What the layer above the tree holds, as its own file system counts it.
CHANGE = f"git ls-files | head -n {CHANGED} | while read -r f; do echo changed >> \"$f\"; done"


def measure(product, tries):
    _, cold, _ = product.attempt("true")
    warm, status = [], []
    for _ in range(tries):
        result, steps, printed = product.attempt(STATUS)
        warm.append(steps)
        status.append(int(printed.split()[-1]) / 1000)
        if result["storage"]["tree"] != "overlay":
            print(f"the work tree was a {result['storage']['tree']}: {result['storage']['tree_reason']}")
    changed, _, _ = product.attempt(CHANGE)
    return {
        "storage": changed["storage"],
        "cold": {step: cold[step] for step in cold},
        "warm": {step: statistics.median(one[step] for one in warm) for step in cold},
        "status_ms": statistics.median(status),
        "changed_files": changed["change"]["file_count"],
        "change_bytes": changed["resources"]["work_bytes"],
        "change_inodes": changed["resources"]["work_inodes"],
    }


def host_status(repo, tries):
    git(repo, "status", "--porcelain")
    return statistics.median(timed(lambda: git(repo, "status", "--porcelain")) for _ in range(tries))


def figures_of(options, make):
    with tempfile.TemporaryDirectory(prefix="cofferdam-bench-", dir="/var/tmp") as folder:
        repo = os.path.join(folder, "repo")
        os.makedirs(repo)
        make(repo)
        files = int(subprocess.run(["sh", "-c", f"git -C '{repo}' ls-files | wc -l"], check=True, capture_output=True).stdout)
        product = measure(Product(options.build, repo, folder), options.tries)
        return {
            "files": files,
            "product": product,
            "host_status_ms": host_status(repo, options.tries),
            "rivals": rivals(repo, folder, options.tries),
        }


def report(name, figures):
    product = figures["product"]
    cold = product["cold"]["clone"] + product["cold"]["workspace"]
    warm = product["warm"]["clone"] + product["warm"]["workspace"]
    print(f"## {name}: {figures['files']} files\n")
    print("| | ms | against git clone --no-hardlinks |\n|---|---|---|")
    whole = figures["rivals"]["git clone --no-hardlinks"]
    rows = {
        f"cofferdam, warm ({product['storage']['kind']}, {product['storage']['tree']})": warm,
        "of that: clone": product["warm"]["clone"],
        "of that: workspace": product["warm"]["workspace"],
        "cofferdam, cold": cold,
        **figures["rivals"],
    }
    for row, value in rows.items():
        print(f"| {row} | {value:.0f} | {whole / max(value, 0.5):.1f} times as fast |")
    print(f"\nbox with its probes: {product['warm']['box']:.0f} ms. `git status` in it: {product['status_ms']:.0f} ms,")
    print(f"on the host: {figures['host_status_ms']:.0f} ms. An attempt that changed {product['changed_files']} files took")
    print(f"{product['change_bytes'] >> 10} KiB and {product['change_inodes']} inodes of its storage.\n")


def check(figures):
    """What has to hold whatever the machine: the smoke run's part."""
    problems = []
    for name, one in figures.items():
        product = one["product"]
        if product["changed_files"] != min(CHANGED, one["files"]):
            problems.append(f"{name}: {product['changed_files']} files were changed")
        if product["storage"]["tree"] == "overlay" and product["change_bytes"] > (4 << 20):
            problems.append(f"{name}: {CHANGED} files took {product['change_bytes']} bytes")
    return problems


def main():
    parser = argparse.ArgumentParser(description="a private work tree, beside what git and cp make")
    parser.add_argument("--build", required=True)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--tree", default="/usr/include", help="a folder of this host, as the real tree")
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.files, options.tries = 200, 1
    figures = {"generated": figures_of(options, lambda repo: generate(repo, options.files))}
    if not options.smoke and os.path.isdir(options.tree):
        figures[options.tree] = figures_of(options, lambda repo: adopt(repo, options.tree))
    for name, one in figures.items():
        report(name, one)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    problems = check(figures)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
