#!/usr/bin/env python3
"""What a box costs, and whether many of them leave anything: ./bench boxes, docs/benchmarks.md.

  boxes.py --build DIR [--tries N] [--crowd N] [--json FILE]    the figures, beside bubblewrap, docker run and srt
  boxes.py --build DIR --soak [--count N]                       N boxes one after another, 2000 unless told
  boxes.py --build DIR --smoke                                  small numbers of everything; figures do not count
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

USER = 12345  # who is not root, as in the tests
BOX_USER = "65533"  # who root becomes for boxes, as in the product
PR_SET_CHILD_SUBREAPER = 36
BOUND_RATIO = 2.0  # of bubblewrap
BOUND_MIB = 6.0  # of launcher and init
WAIT = 120


class Ground:
    """A folder that everybody can read, with the programs; and who runs them."""

    def __init__(self, build, folder):
        self.folder = folder
        self.agent = os.path.join(folder, "agent")
        os.makedirs(self.agent)
        built = pathlib.Path(build).resolve()
        for name, to in (("cofferdam-init", folder), ("tests/box-bench", folder), ("tests/box-probe", self.agent)):
            shutil.copy(built / name, to)
        for path in (folder, self.agent):
            os.chmod(path, 0o755)
        self.driver = os.path.join(folder, "box-bench")
        self.init = os.path.join(folder, "cofferdam-init")
        self.probe = os.path.join(self.agent, "box-probe")

    def users(self):
        return ["user", "root"] if os.geteuid() == 0 else ["user"]

    def popen(self, user, groups, verb, *args, **more):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        if groups:
            env["BOX_BENCH_CGROUP"] = groups
        if user == "user" and os.geteuid() == 0:
            more.update(user=USER, group=USER, extra_groups=[])
        ids = BOX_USER if user == "root" else "-"
        return subprocess.Popen(
            [self.driver, verb, self.init, self.agent, ids, *args],
            env=env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
        )

    def run(self, user, groups, verb, *args):
        process = self.popen(user, groups, verb, *args, stdin=subprocess.DEVNULL)
        try:
            out, err = process.communicate()
        finally:
            process.kill()  # of one that has ended: nothing
            process.wait()
        if process.returncode != 0:
            raise RuntimeError(f"{verb} as {user}: {err.strip()}")
        return out


@contextlib.contextmanager
def group_subtree(driver, user):
    """The name of a subtree for control groups of that user's; empty where there can be none."""
    if os.geteuid() != 0 or not driver.exists():
        yield ""
        return
    name = "cofferdam-bench-" + secrets.token_hex(4)
    hand = [str(driver), "hand-over", "-", "-", "-", name, str(USER)]
    if user == "user" and subprocess.run(hand, capture_output=True, check=False).returncode != 0:
        yield ""
        return
    try:
        yield name
    finally:
        if user == "user":
            subprocess.run([*hand[:1], "take-back", *hand[2:]], check=True)
        else:
            for folder in sorted(group_folders(name), reverse=True):  # of a run that was broken off
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def group_folders(name):
    """Every group of that name, in every hierarchy."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        if " - cgroup" in line:
            place = pathlib.Path(line.split(" ")[4], name)
            found += [str(place), *(str(one) for one in place.glob("**/"))] if place.exists() else []
    return found


def bubblewrap(ground):
    """The namespaces, the root and the folders of a box, as far as bubblewrap makes them."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            words += ["--symlink", os.readlink("/" + name), "/" + name]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home/agent", "--tmpfs", "/workspace"]
    words += ["--ro-bind", ground.agent, "/opt/agent", "--", "/opt/agent/box-probe", "nothing"]
    return [shutil.which("bwrap"), *words[1:]]


@contextlib.contextmanager
def docker(ground):
    """An engine of our own on a private socket, with an image of one program; or why there is none."""
    if os.geteuid() != 0:
        yield None, "not root"
        return
    if shutil.which("dockerd") is None or shutil.which("docker") is None:
        yield None, "docker.io is not installed"
        return
    folder = os.path.join(ground.folder, "docker")
    os.makedirs(folder)
    socket = f"unix://{folder}/socket"
    log = open(os.path.join(folder, "log"), "w", encoding="utf-8")  # noqa: SIM115
    engine = subprocess.Popen(
        ["dockerd", "-H", socket, "--data-root", folder + "/data", "--exec-root", folder + "/exec", "--pidfile",
         folder + "/pid", "--bridge=none", "--iptables=false", "--ip6tables=false"], stdout=log, stderr=log,
    )
    client = [shutil.which("docker"), "-H", socket]
    try:
        end = time.monotonic() + WAIT
        while subprocess.run([*client, "version"], capture_output=True, check=False).returncode != 0:
            if engine.poll() is not None or time.monotonic() > end:
                text = pathlib.Path(log.name).read_text(encoding="utf-8").strip().split("\n")[-1]
                yield None, "the engine does not start: " + text[:200]
                return
            time.sleep(0.1)  # between two looks
        with tarfile.open(folder + "/image.tar", "w") as image:
            image.add(ground.probe, "box-probe")
        subprocess.run([*client, "import", folder + "/image.tar", "bench:1"], check=True, stdout=subprocess.DEVNULL)
        command = [*client, "run", "--rm", "--network", "none", "bench:1", "/box-probe", "nothing"]
        first = subprocess.run(command, capture_output=True, text=True, check=False)
        yield (command, "") if first.returncode == 0 else (None, "docker run: " + first.stderr.strip()[-200:])
    finally:
        engine.terminate()
        engine.wait()
        log.close()
        for mount in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()[::-1]:
            if mount.split(" ")[1].startswith(folder):
                subprocess.run(["umount", mount.split(" ")[1]], check=False)


def lines_of(out):
    figures = {}
    for line in out.strip().splitlines():
        name, *pairs = line.split(" ")
        figures.setdefault(name, []).append({key: int(value) for key, value in (pair.split("=") for pair in pairs)})
    return figures


def medians(all_of):
    return {
        name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]} | {"best": min(one["running"] for one in rounds)}
        for name, rounds in all_of.items()
    }


def measure_time(ground, helper, user, tries, rivals):
    others = []
    for name, command in rivals.items():
        others += [name, *command, "-"]
    with group_subtree(helper, user) as groups:
        figures = medians(lines_of(ground.run(user, groups, "time", str(tries), *others)))
        if groups:
            figures["box without groups"] = medians(lines_of(ground.run(user, "", "time", str(tries))))["box"]
    return figures


def pss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def measure_crowd(ground, helper, user, number):
    """That many boxes at the same time, each of a supervisor of its own; MiB of each, and how long all took to start."""
    problems, memory, crowd = [], [], []
    with group_subtree(helper, user) as groups:
        begin = time.monotonic()
        for _ in range(number):
            crowd.append(ground.popen(user, groups, "hold", stdin=subprocess.PIPE))
        said = [one.stdout.readline().strip() for one in crowd]
        seconds = time.monotonic() - begin
        running = [line for line in said if line]
        # "box, launcher pid 1, init pid 2; storage, keeper pid 3"
        for line in running:
            launcher, init, keeper = (part.split()[-1] for part in line.replace(";", ",").split(",") if "pid" in part)
            with contextlib.suppress(PermissionError):
                memory.append({"box": pss_kib(launcher) + pss_kib(init), "keeper": pss_kib(keeper)})
        for one in crowd:
            one.stdin.close()
        for one in crowd:
            err = one.stderr.read()
            if one.wait() != 0 or err:
                problems.append(f"{number} at once as {user}: {err.strip() or one.returncode}")
    if len(running) != number:
        problems.append(f"{number} at once as {user}: only {len(running)} ran")
    if groups and (left := group_folders(groups)):
        problems.append(f"left behind: {left[:3]}")
    figures = {"number": number, "seconds": seconds}
    if memory:
        figures["box_mib"] = max(one["box"] for one in memory) / 1024
        figures["keeper_mib"] = max(one["keeper"] for one in memory) / 1024
        if figures["box_mib"] > BOUND_MIB:
            problems.append(f"{figures['box_mib']:.1f} MiB for a box as {user}, more than {BOUND_MIB}")
    return figures, problems


def own_children():
    return pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split()


def end_orphans(known):
    """How many there were: whoever ends leaves its own children to us."""
    count = 0
    while more := set(own_children()) - set(known):
        for pid in more:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)
        count += len(more)
    return count


def measure_sequence(ground, helper, user, number, *more_words):
    """Whatever a box leaves running becomes ours when the driver has ended: prctl(2), PR_SET_CHILD_SUBREAPER."""
    problems = []
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    children, files = own_children(), sorted(os.listdir(ground.folder))
    with group_subtree(helper, user) as groups:
        handed_over = group_folders(groups) if groups else []
        begin = time.monotonic()
        before, after = ground.run(user, groups, "sequence", str(number), *more_words).strip().splitlines()
        seconds = time.monotonic() - begin
        if before.removeprefix("before ") != after.removeprefix("after "):
            problems.append(f"{number} boxes as {user}: {before}; {after}")
        if count := end_orphans(children):
            problems.append(f"{number} boxes as {user} left {count} processes")
        if groups and (left := group_folders(groups)) != handed_over:
            problems.append(f"{number} boxes as {user} left groups: {left}")
            for folder in sorted(set(left) - set(handed_over), reverse=True):
                os.rmdir(folder)
    if groups and (left := group_folders(groups)):
        problems.append(f"{number} boxes as {user} left groups: {left}")
    if sorted(os.listdir(ground.folder)) != files:
        problems.append(f"{number} boxes as {user} left files")
    return {"number": number, "seconds": seconds, "holdings": after.removeprefix("after ")}, problems


def check_the_check(ground, helper):
    """A driver that leaves something on purpose must be noticed, for each kind of thing."""
    missed = []
    for user in ground.users():
        _, problems = measure_sequence(ground, helper, user, 1, "spill")
        text = "; ".join(problems)
        wanted = ["left 1 processes", "before descriptors"]
        if helper.exists() and os.geteuid() == 0:
            wanted.append("left groups")
        missed += [f"as {user} nobody noticed: {one}" for one in wanted if one not in text]
    return missed


def time_table(user, figures, reasons):
    yard = figures.get("bubblewrap")
    print(f"As {'root' if user == 'root' else 'uid ' + str(USER)}: milliseconds from spawn, medians.\n")
    print("| | the program runs | fastest | everything is gone | of bubblewrap's |\n|---|---|---|---|---|")
    for name, one in figures.items():
        ratio = f"{one['running'] / yard['running']:.2f}" if yard else ""
        cells = (f"{one[key] / 1000:.1f}" for key in ("running", "best", "gone"))
        print(f"| {name} | {' | '.join(cells)} | {ratio} |")
    for name, reason in reasons.items():
        print(f"| {name} | not measured: {reason} | | | |")
    box = figures["box"]
    print(f"\nOf the box: ready after {box['ready'] / 1000:.1f} ms, of which the probes inside took {box['probing'] / 1000:.1f} ms.\n")


def all_times(ground, helper, tries):
    figures = {}
    with docker(ground) as (run_docker, no_docker):
        for user in ground.users():
            rivals, reasons = {"bare": [ground.probe, "nothing"]}, {}
            rivals_or = {
                "bubblewrap": (bubblewrap(ground) if shutil.which("bwrap") else None, "not installed"),
                "docker": (run_docker if user == "root" else None, no_docker or "asked as root only"),
                "srt": ([shutil.which("srt"), ground.probe, "nothing"] if shutil.which("srt") else None, "not installed"),
            }
            for name, (command, reason) in rivals_or.items():
                if command is None:
                    reasons[name] = reason
                else:
                    rivals[name] = command
            figures[user] = measure_time(ground, helper, user, tries, rivals)
            time_table(user, figures[user], reasons)
    return figures


def all_crowds(ground, helper, numbers):
    figures, problems = {}, []
    print("| | boxes at once | s until all ran | MiB of a box | MiB of its attempt's keeper |\n|---|---|---|---|---|")
    for user in ground.users():
        figures[user] = []
        for number in numbers:
            one, more = measure_crowd(ground, helper, user, number)
            figures[user].append(one)
            problems += more
            cells = (f"{one[key]:.2f}" if key in one else "" for key in ("seconds", "box_mib", "keeper_mib"))
            print(f"| {user} | {number} | {' | '.join(cells)} |")
    print()
    return figures, problems


def all_sequences(ground, helper, number):
    figures, problems = {}, []
    for user in ground.users():
        figures[user], more = measure_sequence(ground, helper, user, number)
        problems += more
        one = figures[user]
        each = one["seconds"] * 1000 / (number + 1)
        print(f"{number} boxes one after another as {user}: {one['seconds']:.1f} s, {each:.1f} ms each with its storage. "
              f"Before and after: {one['holdings']}." if not more else f"{user}: {more}")
    return figures, problems


def main():
    parser = argparse.ArgumentParser(description="what a box costs, and whether many of them leave anything")
    parser.add_argument("--build", required=True)
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--crowd", type=int, default=100)
    parser.add_argument("--count", type=int, default=2000, help="boxes one after another, with --soak")
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was made is taken away
    figures = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    problems = []
    helper = pathlib.Path(options.build).resolve() / "tests/box-driver"
    print(f"load {figures['load']:.1f} on {figures['cores']} cores\n")
    with tempfile.TemporaryDirectory(prefix="cofferdam-bench-", dir="/var/tmp") as folder:
        ground = Ground(options.build, folder)
        if options.smoke:
            options.tries, options.crowd, options.count = 2, 5, 5
        if options.smoke or not options.soak:
            figures["time"] = all_times(ground, helper, options.tries)
            figures["crowd"], more = all_crowds(ground, helper, [1, options.crowd])
            problems += more
        if options.smoke or options.soak:
            figures["sequence"], more = all_sequences(ground, helper, options.count)
            problems += more
        if options.smoke:
            problems += check_the_check(ground, helper)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
