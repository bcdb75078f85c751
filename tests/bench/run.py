#!/usr/bin/env python3
"""Measures the gateway in one run with a direct connection and with real proxies: ./bench, docs/benchmarks.md.

  run.py --build DIR [--json FILE] [--only NAME,NAME] [--streams N,N] [--tries N]    the figures
  run.py --build DIR --smoke                                             that it all still works; no figure counts
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

import proxies
import report

HERE = pathlib.Path(__file__).resolve().parent
BODY = HERE.parent / "unit" / "egress" / "bodies" / "claude-all-tools.json"

# Streams -> (microseconds between events, events of an answer, rounds; the first round is not counted).
PACES = {1: (5_000, 20, 41), 100: (50_000, 40, 6), 1000: (100_000, 60, 3)}
# A measurement counts as calm when others used less of the machine meanwhile; otherwise it is tried again, and the
# calmest one counts, for everybody in the same way.
CALM_CORES = 0.2
BULK_BYTES = 256 << 20


def write_body(folder):
    """A recorded request of Claude Code, with a place for what the upstream is to answer."""
    body = json.loads(BODY.read_text(encoding="utf-8"))
    body["messages"][0]["content"].append({"type": "text", "text": "@PLAN@"})
    path = pathlib.Path(folder) / "body.json"
    path.write_text(json.dumps(body, separators=(",", ":")), encoding="utf-8")
    return str(path)


def busy_seconds():
    fields = [int(value) for value in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / proxies.TICK


class Sampler(threading.Thread):
    """The most memory that the target had while the client ran."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.peak, self.over = target, (0, 0), threading.Event()

    def run(self):
        while not self.over.wait(0.25):
            try:
                self.peak = max(self.peak, proxies.resident_kib(self.target.pids()))
            except (OSError, ValueError):
                pass  # a process of it has just ended

    def finish(self):
        self.over.set()
        self.join()
        return self.peak


def measure(world, target, body, load):
    """Runs the client once; `load` is its options. What it printed, and what the target and others used."""
    command = [world.bench, "client", "--port", str(target.port), "--via", target.via, "--ca", world.ca]
    command += ["--target-port", str(world.upstream_port), "--body", body]
    for name, value in load.items():
        command += [f"--{name}", str(value)]
    sampler = Sampler(target)
    ours = [os.getpid(), world.upstream.pid, *target.pids()]
    sampler.start()
    cpu, busy, mine = proxies.cpu_seconds(target.pids()), busy_seconds(), proxies.cpu_seconds(ours)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    used = proxies.cpu_seconds(ours) - mine
    peak = sampler.finish()
    if done.returncode != 0:
        return {"errors": 1, "first_error": done.stderr.strip()[-200:]}
    figures = json.loads(done.stdout)
    figures["cpu_seconds"] = proxies.cpu_seconds(target.pids()) - cpu
    figures["rss_kib"], figures["rss_own_kib"] = peak
    figures["others_cores"] = round(max(0.0, busy_seconds() - busy - used - client) / took, 2)
    return figures


def measure_calmly(world, target, body, load, tries):
    best = None
    for _ in range(tries):
        figures = measure(world, target, body, load)
        if best is None or figures.get("others_cores", 9) < best.get("others_cores", 9):
            best = figures
        if figures.get("others_cores", 9) < CALM_CORES:
            break
    return best


def stream_load(streams, pace):
    interval, events, rounds = pace
    return {
        "streams": streams,
        "interval-us": interval,
        "events": events,
        "rounds": rounds,
        # All the time somebody begins: when the last one connects, the first one ends its first round.
        "spread-us": interval * events if streams > 1 else 0,
        "limit-s": 90,
    }


def bulk_load(size):
    return {"streams": 1, "rounds": 4, "bytes": size, "limit-s": 120}


def start_targets(world, names):
    targets, missing = [], {}
    for name in names:
        try:
            targets.append(proxies.STARTERS[name](world))
        except proxies.NotMeasured as reason:
            missing[name] = str(reason)
    return targets, missing


def run(options, folder):
    os.chmod(folder, 0o755)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    body = write_body(folder)
    build = pathlib.Path(options.build).resolve()
    connections = 2 * max(options.paces)
    world = proxies.World(str(build / "tests/cofferdam-bench"), str(build / "cofferdam"), folder, connections)
    os.chmod(world.ca, 0o644)  # nobody reads it too
    targets, missing = [], {}
    out = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()[0]},
        "paces": options.paces,
        "targets": {},
    }
    try:
        targets, missing = start_targets(world, options.only)
        time.sleep(options.settle_s)
        for target in targets:
            idle = proxies.resident_kib(target.pids())
            out["targets"][target.name] = {"version": target.version, "idle_kib": idle, "streams": {}}
        # Everyone's turn at one load, then the next load: what the machine does meanwhile meets all of them.
        for streams, pace in options.paces.items():
            for target in targets:
                print(f"{target.name}: {streams} streams", file=sys.stderr)
                figures = measure_calmly(world, target, body, stream_load(streams, pace), options.tries)
                out["targets"][target.name]["streams"][streams] = figures
        for target in targets:
            print(f"{target.name}: bulk", file=sys.stderr)
            figures = measure_calmly(world, target, body, bulk_load(options.bulk_bytes), options.tries)
            out["targets"][target.name]["bulk"] = figures
    finally:
        said = {target.name: target.stop() for target in targets}
        world.upstream.terminate()
        world.upstream.wait()
    out["not_measured"] = missing
    if said.get("cofferdam"):
        out["gateway_events"] = json.loads(said["cofferdam"].strip().splitlines()[-1])
    return out


def smoke_problems(out):
    """What is wrong with a small run; times are not looked at."""
    problems = [f"{name}: {why}" for name, why in out["not_measured"].items()]
    for name, target in out["targets"].items():
        for streams, figures in [*target["streams"].items(), ("bulk", target["bulk"])]:
            if figures["errors"]:
                problems.append(f"{name}, {streams}: {figures['first_error']}")
        for streams, (_, events, rounds) in out["paces"].items():
            wanted, seen = streams * events * (rounds - 1), target["streams"][streams].get("events")
            if wanted != seen:
                problems.append(f"{name}, {streams}: {seen} events instead of {wanted}")
    answers = sum(streams * pace[2] for streams, pace in out["paces"].items()) + 4
    events = out.get("gateway_events", {})
    if events.get("relayed") != answers or events.get("others") != 0:
        problems.append(f"the gateway's account: {events} instead of {answers} relayed")
    report.as_text(out)
    return problems


def main():
    parser = argparse.ArgumentParser(description="the gateway beside a direct connection and real proxies")
    parser.add_argument("--build", required=True)
    parser.add_argument("--json")
    parser.add_argument("--only", default=",".join(proxies.STARTERS))
    parser.add_argument("--streams", default=",".join(str(streams) for streams in PACES))
    parser.add_argument("--tries", type=int, default=3, help="at most so many, for a calm one")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    options.only = options.only.split(",")
    options.paces = {int(streams): PACES[int(streams)] for streams in options.streams.split(",")}
    options.bulk_bytes, options.settle_s = BULK_BYTES, 2
    if options.smoke:
        options.only = ["direct", "cofferdam"]
        options.paces = {1: (1_000, 5, 2), 5: (1_000, 5, 2)}
        options.bulk_bytes, options.settle_s, options.tries = 1 << 20, 0, 1
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="cofferdam-bench-") as folder:
        out = run(options, folder)
    if options.smoke:
        problems = smoke_problems(out)
        print("\n".join(problems) or "ok")
        return 1 if problems else 0
    print(report.as_text(out))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
