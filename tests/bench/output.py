#!/usr/bin/env python3
"""What a flood of output costs the supervisor: ./bench output, docs/benchmarks.md.

  output.py --build DIR [--mib N] [--json FILE]    the figures
  output.py --build DIR --smoke                    little output; only the bound of memory counts
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# docs/limits.md: what the supervisor of a command may take, whatever is printed.
BOUND_MIB = 32
PROGRAMS = {"one endless line": "head -c {bytes} /dev/zero", "short lines": "yes 'a line of output' | head -c {bytes}"}


def git(repo, *args):
    identity = ["-c", "user.name=Bench", "-c", "user.email=bench@localhost"]
    subprocess.run(["git", "-C", repo, *identity, *args], check=True, stdout=subprocess.DEVNULL)


def make_world(folder):
    repo = os.path.join(folder, "repo")
    os.makedirs(repo)
    git(repo, "init", "-q")
    git(repo, "commit", "-q", "--allow-empty", "-m", "first")
    config = os.path.join(folder, "config.toml")
    pathlib.Path(config).write_text(f"[limits]\nstdout_bytes = {16 << 30}\n", encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": folder, "COFFERDAM_STATE_DIR": os.path.join(folder, "state")}
    return repo, config, env


def peak_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").split("\n"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def attempt(program, world, script):
    """One attempt that prints; its result and the most memory that its supervisor had."""
    repo, config, env = world
    command = [program, "run", "--json", "--repo", repo, "--config", config, "--agent", "command"]
    child = subprocess.Popen(
        [*command, "--", "/bin/sh", "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peak = 0
    while child.poll() is None:
        try:
            peak = max(peak, peak_kib(child.pid))
        except OSError:
            pass  # it has just ended
        time.sleep(0.02)
    out, err = child.communicate()
    if child.returncode != 0:
        raise RuntimeError(f"the attempt ended with {child.returncode}: {err[-400:]}")
    return json.loads(out.strip().split("\n")[-1]), peak


def seconds(result):
    def at(key):
        return time.strptime(result["process"][key][:19], "%Y-%m-%dT%H:%M:%S"), result["process"][key][20:23]

    (begin, begin_ms), (end, end_ms) = at("started_at"), at("ended_at")
    return time.mktime(end) - time.mktime(begin) + (int(end_ms) - int(begin_ms)) / 1000


def measure(program, world, script, size):
    begin = time.monotonic()
    subprocess.run(["/bin/sh", "-c", script + " | cat > /dev/null"], check=True)
    plain = time.monotonic() - begin
    result, peak = attempt(program, world, script)
    problems = []
    if result["output"]["stdout_bytes"] != size:
        problems.append(f"{result['output']['stdout_bytes']} bytes were read instead of {size}")
    if peak > BOUND_MIB * 1024:
        problems.append(f"the supervisor took {peak} KiB, the bound is {BOUND_MIB} MiB")
    took = max(seconds(result), 0.001)
    return {"mb_s": size / took / 1e6, "cat_mb_s": size / plain / 1e6, "peak_kib": peak, "problems": problems}


def main():
    parser = argparse.ArgumentParser(description="a flood of output through a real attempt")
    parser.add_argument("--build", required=True)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    size = (64 if options.smoke else options.mib) << 20
    program = str(pathlib.Path(options.build).resolve() / "cofferdam")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="cofferdam-bench-", dir="/var/tmp") as folder:
        world = make_world(folder)
        for name, script in PROGRAMS.items():
            figures[name] = measure(program, world, script.format(bytes=size), size)
    print(f"{size >> 20} MiB each; the bound of the supervisor is {BOUND_MIB} MiB.\n")
    print("| | MB/s | into cat > /dev/null MB/s | ratio | supervisor's peak MiB |\n|---|---|---|---|---|")
    for name, one in figures.items():
        rates = f"{one['mb_s']:.0f} | {one['cat_mb_s']:.0f} | {one['mb_s'] / one['cat_mb_s']:.2f}"
        print(f"| {name} | {rates} | {one['peak_kib'] / 1024:.1f} |")
    problems = [problem for one in figures.values() for problem in one["problems"]]
    print("\n".join(problems))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
