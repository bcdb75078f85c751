"""The proxies that ./bench measures: how each is started on a folder and a port of its own, and how much memory
and processor time its processes take. None touches the configuration of the system."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

NOBODY = 65534
START_LIMIT_S = 30
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")


class NotMeasured(Exception):
    """Why there are no figures for a proxy."""


def find_program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise NotMeasured(f"{name} is not installed")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise NotMeasured(f"ended while starting: {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise NotMeasured("does not accept connections")


def stat_fields(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2 :].split()


def tree(pid):
    """The process and everything that it started."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents.setdefault(int(stat_fields(entry.name)[1]), []).append(int(entry.name))
            except (OSError, ValueError):
                pass  # it has just ended
    out, new = [], [pid]
    while new:
        out += new
        new = [child for parent in new for child in parents.get(parent, [])]
    return out


def resident_kib(pids):
    """Resident memory, and the part of it that is the processes' own and not a mapped file."""
    total, own = 0, 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
            if line.startswith("RssAnon:"):
                own += int(line.split()[1])
    return total, own


def cpu_seconds(pids):
    return sum(int(field) for pid in pids for field in stat_fields(pid)[11:13]) / TICK


class Target:
    """What the client is pointed at. `via`: plain, tls or connect."""

    def __init__(self, name, via, port, process=None, pid=None, version=""):
        self.name, self.via, self.port, self.process, self.version = name, via, port, process, version
        self.pid = pid or (process.pid if process else None)

    def pids(self):
        return tree(self.pid) if self.pid else []

    def stop(self):
        """Ends what was started for it, by its id; what it said meanwhile."""
        if self.process is None:
            return ""
        if self.process.stdin:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        return self.process.stdout.read() if self.process.stdout else ""


class World:
    """One upstream, a folder, and what the proxies need to know of them."""

    def __init__(self, bench, program, folder, connections):
        self.bench, self.program, self.connections = bench, program, connections
        self.folder = pathlib.Path(folder)
        self.ca = str(self.folder / "ca.pem")
        self.upstream = subprocess.Popen([bench, "upstream", "--ca", self.ca], stdout=subprocess.PIPE, text=True)
        self.upstream_port = json.loads(self.upstream.stdout.readline())["port"]

    def own_folder(self, name):
        folder = self.folder / name
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        return folder

    def start(self, name, via, port, command, version):
        """Starts a proxy in the foreground, as nobody when we are root."""
        folder = self.folder / name
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
                **user,
            )
        target = Target(name, via, port, process, version=version)
        try:
            wait_for_port(port, process)
        except NotMeasured as reason:
            target.stop()
            said = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
            raise NotMeasured(f"{reason}: {said[-1][:200] if said else 'it said nothing'}") from None
        return target


def version_of(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    text = (done.stdout + done.stderr).strip().splitlines()
    return text[0].split("version:")[-1].split("Version")[-1].strip() if text else "?"


def start_direct(world):
    return Target("direct", "tls", world.upstream_port)


def start_gateway(world):
    command = [world.bench, "gateway", "--program", world.program, "--upstream", str(world.upstream_port)]
    command += ["--ca", world.ca, "--model", "claude-sonnet-5", "--connections", str(world.connections)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        raise NotMeasured("the gateway did not start")
    ready = json.loads(line)
    version = version_of(world.program, "--version")
    return Target("cofferdam", "plain", ready["port"], process, ready["pid"], version)


def start_nginx(world):
    program = find_program("nginx")
    folder, port = world.own_folder("nginx"), free_port()
    temporary = "\n".join(
        f"  {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"""daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log crit;
events {{ worker_connections 8192; }}
http {{
  access_log off;
{temporary}
  upstream vendor {{ server 127.0.0.1:{world.upstream_port}; keepalive {world.connections}; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    client_max_body_size 32m;
    location / {{
      proxy_pass https://vendor;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {world.ca};
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;
    }}
  }}
}}
"""
    )
    command = [program, "-p", str(folder), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]
    return world.start("nginx", "plain", port, command, version_of(program, "-v"))


def start_squid(world):
    program = find_program("squid")
    folder, port = world.own_folder("squid"), free_port()
    (folder / "squid.conf").write_text(
        f"""http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {folder}/cache.log
pid_filename none
netdb_filename none
pinger_enable off
coredump_dir {folder}
shutdown_lifetime 1 second
max_filedescriptors 8192
"""
    )
    command = [program, "-N", "-f", f"{folder}/squid.conf"]
    return world.start("squid", "connect", port, command, version_of(program, "-v"))


def start_tinyproxy(world):
    program = find_program("tinyproxy")
    folder, port = world.own_folder("tinyproxy"), free_port()
    (folder / "tinyproxy.conf").write_text(
        f"""Port {port}
Listen 127.0.0.1
Timeout 600
MaxClients 4096
LogLevel Critical
LogFile "{folder}/log"
PidFile "{folder}/pid"
Allow 127.0.0.1
"""
    )
    command = [program, "-d", "-c", f"{folder}/tinyproxy.conf"]
    return world.start("tinyproxy", "connect", port, command, version_of(program, "-v"))


def start_mitmproxy(world):
    program = find_program("mitmdump")
    folder, port = world.own_folder("mitmproxy"), free_port()
    # Without it an answer is held back until its end.
    (folder / "stream.py").write_text("def responseheaders(flow):\n    flow.response.stream = True\n")
    command = [program, "-q", "--mode", f"reverse:https://127.0.0.1:{world.upstream_port}"]
    command += ["--listen-host", "127.0.0.1", "--listen-port", str(port), "-s", f"{folder}/stream.py"]
    command += ["--set", f"confdir={folder}", "--set", f"ssl_verify_upstream_trusted_ca={world.ca}"]
    return world.start("mitmproxy", "plain", port, command, version_of(program, "--version"))


STARTERS = {
    "direct": start_direct,
    "cofferdam": start_gateway,
    "nginx": start_nginx,
    "squid": start_squid,
    "tinyproxy": start_tinyproxy,
    "mitmproxy": start_mitmproxy,
}
