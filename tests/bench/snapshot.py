#!/usr/bin/env python3
"""What it takes to bring ten changed files home: ./bench snapshot, docs/benchmarks.md.

  snapshot.py --build DIR [--sizes N,N] [--tries N] [--json FILE]    the figures
  snapshot.py --build DIR --smoke                                    two tiny sizes, once; figures do not count
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

from prepare import Product, generate, git, timed

CHANGED = 10
# Spread over as many folders as there are, as an agent's change is.
CHANGE = (
    "git ls-files > /tmp/all; n=$(wc -l < /tmp/all); step=$((n / {count})); "
    "awk -v s=$step 'NR % s == 1' /tmp/all | head -n {count} | while read -r f; do echo changed >> \"$f\"; done"
).format(count=CHANGED)


def plain_git(folder, repo, tries):
    """Median milliseconds of `git add -A` and `git commit` of as many changed files, in a clone of the repository."""
    clone = os.path.join(folder, "clone")
    git(repo, "clone", "-q", "--shared", repo, clone)
    names = git(clone, "ls-files", "-z").stdout.decode().split("\0")[:-1]
    times = []
    for number in range(tries):
        for name in names[:: len(names) // CHANGED][:CHANGED]:
            with open(os.path.join(clone, name), "a", encoding="utf-8") as file:
                file.write(f"changed {number}\n")
        times.append(timed(lambda: (git(clone, "add", "-A"), git(clone, "commit", "-q", "-m", "change"))))
    return statistics.median(times)


def measure(options, size):
    with tempfile.TemporaryDirectory(prefix="cofferdam-bench-", dir="/var/tmp") as folder:
        repo = os.path.join(folder, "repo")
        os.makedirs(repo)
        generate(repo, size)
        product = Product(options.build, repo, folder)
        product.attempt("true")  # makes the base pack and the cached tree
        steps, changed = [], set()
        for _ in range(options.tries):
            result, one, _ = product.attempt(CHANGE)
            steps.append(one)
            changed.add(result["change"]["file_count"])
        return {
            "tree": result["storage"]["tree"],
            "kind": result["storage"]["kind"],
            "changed_files": sorted(changed),
            "steps": {step: statistics.median(one[step] for one in steps) for step in steps[0]},
            "fastest": min(one["committed"] for one in steps),
            "git": plain_git(folder, repo, options.tries),
        }


def report(figures):
    print("| files | work tree | snapshot ms | collected and committed ms | both ms (fastest) | published ms | git add, commit ms |")
    print("|---|---|---|---|---|---|---|")
    for size, one in figures.items():
        steps = one["steps"]
        parts = [f"{steps['snapshot']:.0f}", f"{steps['committed'] - steps['snapshot']:.0f}"]
        parts += [f"{steps['committed']:.0f} ({one['fastest']:.0f})", f"{steps['published']:.0f}", f"{one['git']:.0f}"]
        print(f"| {size} | {one['kind']}, {one['tree']} | {' | '.join(parts)} |")
    print(f"\n{CHANGED} changed files; all from the event `settled` on. Load of the machine at the end: {os.getloadavg()[0]:.1f}.")


def main():
    parser = argparse.ArgumentParser(description="bringing ten changed files home, beside git add and commit")
    parser.add_argument("--build", required=True)
    parser.add_argument("--sizes", default="5000,50000,200000")
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.sizes, options.tries = "40,80", 1
    figures = {int(size): measure(options, int(size)) for size in options.sizes.split(",")}
    report(figures)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    problems = [f"{size}: {one['changed_files']} files were changed" for size, one in figures.items()
                if one["changed_files"] != [CHANGED]]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
