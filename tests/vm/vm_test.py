"""The product on Debian 12's own kernel: control groups of version 2, Landlock's ABI 2, and no user attributes on
tmpfs. An overlay over memory cannot remove a folder from below there, and the work tree has to be a checkout.

Emulated by qemu without KVM, so that it runs wherever the other tests run. The kernel is Debian's package, unpacked
below the build folder and never installed; the disk holds what the product takes from a host's /usr. One boot,
then all checks on what the machine has reported. Exit status 77: something that it takes is not there.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
META_PACKAGE = "linux-image-cloud-amd64"  # ext4 is built in, and it boots faster than the one for real machines
BOOT_SECONDS = 540  # without KVM everything takes many times as long; it ends a machine that hangs
ROOTLESS = 12345
TOOLS = ["qemu-system-x86_64", "apt-cache", "apt-get", "cpio", "depmod", "dpkg", "dpkg-deb", "git", "ldd", "mke2fs",
         "modprobe", "setpriv"]
# Of each what it installs below /usr/bin, /usr/sbin and /usr/lib, and the libraries that this takes.
GUEST_PACKAGES = ["git", "dash", "coreutils", "findutils", "sed", "grep", "diffutils", "e2fsprogs", "mount",
                  "util-linux", "kmod", "perl-base"]
PROGRAMS = ["cofferdam", "cofferdam-init", "cofferdam-probe"]
INITRAMFS_TOOLS = ["sh", "mount", "insmod", "switch_root"]
GUEST_MODULES = ["overlay", "loop"]  # loaded by the kernel when they are asked for, as on every Debian
DISK_MODULES = ["virtio_pci", "virtio_blk"]


# Controls that are best-effort and not in force: the programs are the host's, and nobody has handed over groups.
UNPINNED = {"pinned-root"}
UNDELEGATED = {"pinned-root", "memory", "cpu"}
WITH_GROUPS = ["root", "slot"]  # root makes its own; the other one has what `host-setup` has handed over


def skip(reason):
    must = os.environ.get("COFFERDAM_MUST_WORK", "").split(",")
    if "all" in must or "vm" in must:
        sys.exit(f"FAILED vm: {reason}")
    print(f"SKIP vm: {reason}")
    sys.exit(77)


def run(argv, **more):
    return subprocess.run([str(part) for part in argv], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def environment():
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {**os.environ, "PATH": path + ":/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}


def find_tools():
    missing = [tool for tool in TOOLS if shutil.which(tool, path=environment()["PATH"]) is None]
    if missing:
        skip(f"{', '.join(missing)} not installed (scripts/packages test)")


# --- the kernel ---------------------------------------------------------------------------------------------


class Kernel:
    """Debian's package, as apt has it, unpacked in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.version = next((entry.name for entry in (folder / "lib/modules").iterdir()))
        self.image = folder / "boot" / f"vmlinuz-{self.version}"

    def with_needed(self, modules):
        """Their files, those that others need first."""
        shown = ""
        for module in modules:
            shown += run(["modprobe", "-d", self.folder, "-S", self.version, "--show-depends", module],
                         env=environment())
        files = [line.split()[1] for line in shown.splitlines() if line.startswith("insmod")]
        return [pathlib.Path(file) for file in dict.fromkeys(files)]


def download(folder, options):
    """The package behind the meta package, by apt as this machine has it configured; None: apt has none."""
    try:
        shown = run(["apt-cache", *options, "depends", "--important", META_PACKAGE], env=environment())
        names = re.findall(r"Depends: (linux-image-6\.1\.\S+)", shown)
        if not names:
            return None
        run(["apt-get", *options, "download", names[0]], cwd=folder, env=environment(), stderr=subprocess.STDOUT)
    except subprocess.CalledProcessError:
        return None
    return next(iter(folder.glob("linux-image-6.1*.deb")), None)


def download_anew(folder):
    """When apt's lists are missing or old: with lists of our own, so that the machine's stay as they are."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    try:
        run(["apt-get", *options, "update"], env=environment(), stderr=subprocess.STDOUT)
    except subprocess.CalledProcessError:
        return None
    return download(folder, options)


def get_kernel(cache):
    kept = cache / "kernel"
    if kept.exists():
        return Kernel(kept)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        folder = pathlib.Path(temporary)
        package = download(folder, ["-o", "APT::Sandbox::User=root"]) or download_anew(folder)
        if package is None:
            skip(f"apt has no kernel 6.1 behind {META_PACKAGE}")
        unpacked = folder / "unpacked"
        run(["dpkg-deb", "-x", package, unpacked])
        version = Kernel(unpacked).version
        run(["depmod", "-b", unpacked, version], env=environment())
        unpacked.rename(kept)  # whole, or not at all
    return Kernel(kept)


# --- what the machine boots ---------------------------------------------------------------------------------


def real_place(path):
    """Where a file is below /usr, into which /bin and /lib are links; None: elsewhere."""
    resolved = pathlib.Path(path).parent.resolve() / pathlib.Path(path).name
    return resolved if resolved.is_relative_to("/usr") else None


def package_files(package):
    try:
        listed = run(["dpkg", "-L", package]).splitlines()
    except subprocess.CalledProcessError:
        skip(f"{package} is not installed (scripts/packages test)")
    for line in listed:
        place = real_place(line)
        wanted = place is not None and place.parts[2:3] in (("bin",), ("sbin",), ("lib",))
        if wanted and (place.is_file() or place.is_symlink()):
            yield place


def libraries(programs):
    """Every library that one of them is linked with, under the name by which it is asked for."""
    shown = subprocess.run(["ldd", *map(str, programs)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=False).stdout  # says no of what is no dynamic program
    found = set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", shown, re.MULTILINE))
    return [pathlib.Path(name) for name in sorted(found)]


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


class Tree:
    """A root folder that is being made of files of this host."""

    def __init__(self, root, folders):
        self.root = root
        self.placed = {}
        for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", *folders]:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for link in ["bin", "sbin", "lib", "lib64"]:
            (root / link).symlink_to(f"usr/{link}")

    def put(self, source, place=None):
        target = self.root / str(place or source).lstrip("/")
        if target.is_symlink() or target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
            if source.resolve().is_file() and source.resolve().is_relative_to("/usr"):
                self.put(source.resolve())
            return
        # git's programs are one file under a hundred names, and mke2fs keeps that.
        first = self.placed.setdefault(source.stat().st_ino, target)
        if first == target:
            shutil.copy2(source, target)
        else:
            os.link(first, target)

    def put_libraries(self, files):
        loader = pathlib.Path("/usr/lib64/ld-linux-x86-64.so.2")
        self.put(loader)
        for library in libraries([file for file in files if file.is_file() and is_program(file)]):
            self.put(real_place(library) or library)


def make_root(root, programs, kernel):
    tree = Tree(root, ["dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "var/lib", "var/tmp", "usr/share"])
    files = [file for package in GUEST_PACKAGES for file in package_files(package)]
    ours = [programs / name for name in PROGRAMS]
    for file in files:
        tree.put(file)
    for file in ours:
        tree.put(file, f"/usr/bin/{file.name}")
    tree.put_libraries([*files, *ours])
    (root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nada:x:{ROOTLESS}:{ROOTLESS}::/home:/bin/sh\n")
    (root / "etc/group").write_text(f"root:x:0:\nada:x:{ROOTLESS}:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/resolv.conf").write_text("")
    shutil.copy(HERE / "attempts.sh", root / "usr/share/attempts")
    shutil.copy(HERE / "guest.sh", root / "usr/sbin/guest")
    (root / "usr/sbin/guest").chmod(0o755)
    for file in kernel.with_needed(GUEST_MODULES):
        tree.put(file, "/usr/lib" / file.relative_to(kernel.folder / "lib"))
    for name in ["modules.order", "modules.builtin", "modules.builtin.modinfo"]:
        tree.put(kernel.folder / "lib/modules" / kernel.version / name, f"/usr/lib/modules/{kernel.version}/{name}")
    run(["depmod", "-b", root, kernel.version], env=environment())


def make_disk(folder, programs, kernel):
    root = folder / "root"
    make_root(root, programs, kernel)
    disk = folder / "disk"
    run(["mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", root, disk, "768M"], env=environment())
    return disk


def make_initramfs(folder, kernel):
    root = folder / "initramfs"
    tree = Tree(root, ["dev", "disk"])
    programs = [real_place(shutil.which(name, path=environment()["PATH"])) for name in INITRAMFS_TOOLS]
    for program in programs:
        tree.put(program)
    tree.put_libraries(programs)
    shutil.copy(HERE / "initramfs.sh", root / "init")
    (root / "init").chmod(0o755)
    order = []
    for file in kernel.with_needed(DISK_MODULES):
        shutil.copy(file, root / file.name)
        order.append(f"/{file.name}\n")
    (root / "modules.order").write_text("".join(order))
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = folder / "initramfs.cpio"
    with open(archive, "wb") as out:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=names.encode(), stdout=out, cwd=root, check=True)
    return archive


def boot(folder, kernel, disk, initramfs):
    """What the machine has written to its second serial port until it was off."""
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", "2", "-m", "1024",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
            "-kernel", kernel.image, "-initrd", initramfs, "-append", "console=ttyS0 panic=-1 quiet",
            "-drive", f"file={disk},format=raw,if=virtio,snapshot=on",
            "-serial", f"file:{folder / 'console'}", "-serial", f"file:{folder / 'report'}"]
    try:
        subprocess.run([str(part) for part in argv], stdin=subprocess.DEVNULL, timeout=BOOT_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        print(f"the machine did not come to an end: {error}", file=sys.stderr)
    report = (folder / "report").read_text(errors="replace").replace("\r", "")
    if "@done" not in report:
        print((folder / "console").read_text(errors="replace")[-8000:], file=sys.stderr)
        sys.exit(f"FAILED vm: the machine has not run to its end; it reported:\n{report}")
    return report


# --- the checks ---------------------------------------------------------------------------------------------


def sections(report):
    """name -> (output, exit status)"""
    found = {}
    for match in re.finditer(r"^@begin (\S+)\n(.*?)^@end \1 (\d+)$", report, re.MULTILINE | re.DOTALL):
        found[match[1]] = (match[2].strip(), int(match[3]))
    return found


def run_on_host(folder, programs):
    """The same attempts here, as an unprivileged user."""
    home = folder / "home"
    staged = folder / "programs"
    for made in (home, staged):
        made.mkdir()
    for name in PROGRAMS:
        shutil.copy2(programs / name, staged / name)
    shutil.copy(HERE / "attempts.sh", staged / "attempts")
    (staged / "attempts").chmod(0o644)
    ids = {}
    if os.geteuid() == 0:
        os.chown(home, ROOTLESS, ROOTLESS)
        ids = {"user": ROOTLESS, "group": ROOTLESS, "extra_groups": []}
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"}
    return run(["sh", staged / "attempts", "host", staged, home, "memory", "reads"], env=env, cwd=home, **ids)


class Debian12(unittest.TestCase):
    found = {}
    maxDiff = None

    def output(self, name):
        self.assertIn(name, self.found)
        text, code = self.found[name]
        self.assertEqual(code, 0, f"{name}: {text}\n{self.found.get(name + '.stderr', ('', 0))[0]}")
        return text

    def result(self, name):
        return json.loads(self.output(name))

    def check_change(self, name):
        """The published change is what plain git makes of the same commands, there and here."""
        tree = self.output("memory/plain")
        self.assertRegex(tree, "^[0-9a-f]{40}$")
        self.assertEqual(self.output("host/plain"), tree)
        self.assertEqual(self.output(f"{name}/published"), tree)
        result = self.result(f"{name}/writes")
        self.assertEqual(result["change"]["tree"], tree)
        weaker = {control["name"] for control in result["controls"] if not control["enforced"]}
        if name != "host":  # where somebody may have handed over groups
            self.assertEqual(weaker, UNPINNED if name in WITH_GROUPS else UNDELEGATED)

    def check_form(self, name, kind, tree):
        storage = self.result(f"{name}/writes")["storage"]
        self.assertEqual((storage["kind"], storage["tree"]), (kind, tree), storage)
        return storage["tree_reason"]

    def test_kernel_is_debians(self):
        self.assertTrue(self.output("kernel").startswith("6.1."), self.output("kernel"))

    def test_memory_is_a_checkout_and_says_why(self):
        reason = self.check_form("memory", "tmpfs", "checkout")
        self.assertEqual(reason, "an overlay does not do on this storage: removing a lower folder: Input/output error")
        self.check_change("memory")

    def test_control_a_disk_is_an_overlay_on_the_same_kernel(self):
        self.output("host-setup")
        for name, kind in (("root", "image"), ("slot", "slot")):
            with self.subTest(name):
                self.assertEqual(self.check_form(name, kind, "overlay"), "")
                self.check_change(name)

    def test_control_memory_is_an_overlay_on_a_kernel_with_user_attributes(self):
        kernel = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
        self.check_form("host", "tmpfs", "overlay" if kernel >= (6, 6) else "checkout")
        self.check_change("host")

    def test_read_only_phase_gets_the_tree_itself(self):
        for name in ("memory", "host"):
            with self.subTest(name):
                self.assertEqual(self.result(f"{name}/reads")["storage"]["tree"], "read-only")
                self.assertEqual(self.output(f"{name}/printed"), "dir/one")  # nothing changed, nothing written

    def test_doctor_finds_every_control_in_force_but_what_nobody_handed_over(self):
        checks = self.result("memory/doctor")["checks"]
        missing = [check for check in checks if "probe" in check["detail"] and check["state"] != "ok"]
        self.assertEqual({check["name"] for check in missing}, UNDELEGATED)
        self.assertEqual({check["state"] for check in missing}, {"weaker"})
        self.assertIn("sudo cofferdam host-setup", " ".join(check["remedy"] for check in missing))

    def test_gateway_confines_itself_with_what_the_kernel_has(self):
        events = [json.loads(line) for line in self.output("memory/log").splitlines()]
        ready = [event["data"] for event in events if event["type"] == "gateway-ready"]
        self.assertEqual([(data["landlock_abi"], data["ports_limited"]) for data in ready], [(2, False)])

    def ended(self, name, code):
        """The result of an attempt that did not complete."""
        text, status = self.found[name]
        self.assertEqual(status, code, f"{name}: {text}\n{self.found[name + '.stderr'][0]}")
        return json.loads(text)

    def proof(self, result, control):
        return next(one["proof"] for one in result["controls"] if one["name"] == control)

    def test_memory_is_a_wall_and_the_work_is_kept(self):
        for name in WITH_GROUPS:
            with self.subTest(name):
                result = self.ended(f"{name}/memory-over", 4)
                self.assertEqual((result["outcome"], result["cause"]["control"]), ("limit", "memory"))
                self.assertIn("its control group may take 76.0 MiB", result["cause"]["detail"])
                self.assertIn("cgroup v2: at most 79691776 bytes, swap 0", self.proof(result, "memory"))
                self.assertEqual(self.output(f"{name}/memory-over-printed"), "")
                self.assertEqual([file["path"] for file in result["change"]["files"]], ["taken"])
                self.assertIsNotNone(result["change"]["commit"])
                self.assertLessEqual(result["resources"]["peak_memory"], 79691776)
                below = self.result(f"{name}/memory-below")
                self.assertEqual(below["outcome"], "completed", "the control")
                self.assertEqual(self.output(f"{name}/memory-below-printed"), "whole")
                self.assertGreater(below["resources"]["peak_memory"], 128 << 20)

    def test_fork_bomb_meets_the_bound(self):
        for name in WITH_GROUPS:
            with self.subTest(name):
                result = self.ended(f"{name}/pids-over", 4)
                self.assertEqual((result["outcome"], result["cause"]["control"]), ("limit", "pids"))
                self.assertIn("cgroup v2: at most 34", self.proof(result, "pids"))
                self.assertEqual(result["resources"]["peak_pids"], 32)
                self.assertEqual([file["path"] for file in result["change"]["files"]], ["taken"])
                self.assertIsNotNone(result["change"]["commit"])
                self.assertEqual(self.result(f"{name}/pids-below")["outcome"], "completed", "the control")

    def test_no_group_is_left(self):
        self.assertEqual(self.output("root/groups"), "")
        handed = "./cofferdam\n./cofferdam/12345\n./cofferdam/12345/sessions"
        self.assertEqual(self.output("slot/groups"), handed)
        self.assertEqual(self.output("refused/groups"), handed)

    def test_gate_passes_with_control_groups(self):
        for name in WITH_GROUPS:
            with self.subTest(name):
                report = self.result(f"{name}/gate")
                self.assertEqual([row for row in report["rows"] if row["verdict"] in ("BROKEN", "unproven")], [])
                self.assertTrue(report["passed"], report["conclusion"])
                verdicts = {row["id"]: row["verdict"] for row in report["rows"]}
                for attack in ("take-memory-group", "fork-50-group", "mount-tmpfs", "host-loopback", "works-fork"):
                    self.assertEqual(verdicts.get(attack), "held", attack)
                self.assertEqual([row for row in report["rows"]
                                  if row["verdict"] == "not applicable" and not row["detail"]], [])

    def test_without_user_namespaces_it_is_refused_and_doctor_names_the_setting(self):
        for name in ("refused-root", "refused-slot"):
            with self.subTest(name):
                result = self.ended(f"{name}/refused", 3)
                self.assertEqual(result["outcome"], "refused")
                self.assertIn("create a user namespace: No space left on device", result["cause"]["detail"])
                self.assertIn("cofferdam doctor", result["cause"]["detail"])
                doctor = self.ended(f"{name}/refused-doctor", 3)
                states = {check["name"]: check["state"] for check in doctor["checks"]}
                self.assertEqual((doctor["ready"], states["user-namespaces"]), (False, "unavailable"))
                self.assertIn("user.max_user_namespaces", doctor["conclusion"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    find_tools()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kernel = get_kernel(arguments.folder)
    with tempfile.TemporaryDirectory(prefix="cofferdam-vm-", dir="/var/tmp") as temporary:
        folder = pathlib.Path(temporary)
        folder.chmod(0o755)
        report = boot(folder, kernel, make_disk(folder, arguments.programs, kernel), make_initramfs(folder, kernel))
        report += run_on_host(folder, arguments.programs)
    (arguments.folder / "report").write_text(report)
    Debian12.found = sections(report)
    unittest.main(argv=[sys.argv[0], "-v"])


if __name__ == "__main__":
    main()
