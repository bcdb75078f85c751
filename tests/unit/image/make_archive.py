"""Archives as `docker save` and OCI layouts have them, good ones and hostile ones.

  make_archive.py KIND FILE
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile


def entry(name, kind=tarfile.REGTYPE, data=b"", mode=0o644, link="", size=None):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    info.size = len(data) if size is None else size
    return info, data


def folder(name):
    return entry(name, tarfile.DIRTYPE, mode=0o700)


def link(name, text):
    return entry(name, tarfile.SYMTYPE, link=text)


def hard(name, target):
    return entry(name, tarfile.LNKTYPE, link=target)


def tar_of(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data) if data else None)
    return out.getvalue()


BASE = [folder("usr"), folder("usr/bin"), entry("usr/bin/tool", data=b"one\n", mode=0o4755),
        entry("usr/secret", data=b"old\n"), folder("usr/gone"), entry("usr/gone/below", data=b"x"),
        folder("etc"), entry("etc/conf", data=b"conf\n", mode=0o600)]
UPPER = [entry("usr/.wh.secret"), folder("usr/gone"), entry("usr/gone/.wh..wh..opq"), entry("usr/gone/new", data=b"new\n"),
         entry("usr/bin/tool2", data=b"two\n", mode=0o755),
         hard("usr/bin/same", "usr/bin/tool2"), link("bin", "usr/bin"), link("usr/out", "../../../etc/passwd"),
         entry("dev/null", tarfile.CHRTYPE, mode=0o666), entry("dev/fifo", tarfile.FIFOTYPE)]


def layers_of(kind):
    """The layers of hostile kinds: the base, and one that does it."""
    bad = {
        "parent": [entry("usr/../../../tmp/escaped", data=b"x")],
        "absolute": [entry("/tmp/escaped", data=b"x")],
        "through-link": [link("usr/way", "/tmp"), entry("usr/way/escaped", data=b"x")],
        "link-then-folder": [link("usr/way", "/tmp"), hard("usr/copy", "usr/way")],
        "hard-link-out": [hard("usr/shadow", "../etc/shadow")],
        "hard-link-nowhere": [hard("usr/shadow", "etc/shadow")],
        "deep": [folder("/".join(["usr"] + ["d"] * 200))],
        "long-name": [entry("usr/" + "n" * 300, data=b"x")],
        "whiteout-parent": [entry("usr/.wh...", data=b"")],
        "whiteout-nothing": [entry("usr/.wh.", data=b"")],
        "root-is-file": [entry("./", data=b"x")],
    }
    if kind in bad:
        return [tar_of(BASE), tar_of(bad[kind])]
    if kind == "huge":
        # The header says 1 TiB; nothing of it is there.
        info, _ = entry("usr/huge", size=1 << 40)
        return [tar_of(BASE), info.tobuf(tarfile.GNU_FORMAT) + b"\0" * 1024]
    if kind == "sparse":
        # An old GNU sparse file of 1 TiB without data.
        head = bytearray(entry("usr/sparse")[0].tobuf(tarfile.GNU_FORMAT))
        head[156:157] = b"S"
        head[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        return [tar_of(BASE), bytes(head) + b"\0" * 1024]
    if kind == "no-usr":
        return [tar_of([folder("etc")])]
    if kind == "many":
        return [tar_of(BASE + [entry(f"usr/f{number}") for number in range(2000)])]
    if kind == "many-bytes":
        return [tar_of(BASE + [entry(f"usr/f{number}", data=b"x" * 600_000) for number in range(3)])]
    if kind == "bomb":
        return [tar_of(BASE), tar_of(BASE) + b"\0" * (64 << 20)]
    return [tar_of(BASE), tar_of(UPPER)]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def docker(kind):
    layers = layers_of(kind)
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(one) for one in layers]}}).encode()
    name = digest(config) + ".json"
    if kind == "docker-wrong-config":
        config += b" "
    if kind == "docker-wrong-layer":
        layers[1] = layers[1].replace(b"two\n", b"TWO\n")
    files = [entry(name, data=config)]
    names = []
    for number, layer in enumerate(layers):
        names.append(f"{number}/layer.tar")
        files.append(entry(names[-1], data=layer))
    manifest = [{"Config": name, "RepoTags": ["a:b"], "Layers": names}]
    if kind == "docker-two-images":
        manifest *= 2
    if kind == "docker-missing-layer":
        manifest[0]["Layers"][1] = "nowhere/layer.tar"
    if kind == "docker-layer-outside":
        files.append(link("2/layer.tar", "../../../../etc/passwd"))
        manifest[0]["Layers"][1] = "2/layer.tar"
    text = json.dumps(manifest).encode()
    if kind == "docker-nested-json":
        text = b"[" * 100_000 + b"]" * 100_000
    return tar_of(files + [entry("manifest.json", data=text)])


def oci(kind):
    layers = [gzip.compress(one, mtime=0) for one in layers_of(kind)]
    plain = [digest(one) for one in layers_of(kind)]
    blobs = {digest(one): one for one in layers}
    if kind == "oci-wrong-blob":
        blobs[digest(layers[1])] = gzip.compress(tar_of(BASE), mtime=0)
    if kind == "oci-wrong-diff":
        plain[1] = "0" * 64

    def add(document):
        data = json.dumps(document).encode()
        blobs[digest(data)] = data
        return {"digest": "sha256:" + digest(data), "size": len(data)}

    config = add({"rootfs": {"diff_ids": ["sha256:" + one for one in plain]}})
    manifest = add({"config": config, "layers": [{"digest": "sha256:" + digest(one)} for one in layers]})
    if kind == "oci-wrong-manifest":
        blobs[manifest["digest"][7:]] += b" "
    index = {"schemaVersion": 2, "manifests": [manifest]}
    files = [entry("blobs/sha256/" + name, data=data) for name, data in blobs.items()]
    return tar_of(files + [entry("oci-layout", data=b'{"imageLayoutVersion":"1.0.0"}'),
                           entry("index.json", data=json.dumps(index).encode())])


def main():
    kind, path = sys.argv[1:]
    if kind == "empty":
        data = b""
    elif kind == "noise":
        data = bytes(range(256)) * 100
    elif kind == "cut":
        data = docker("docker")[:4000]
    elif kind == "other-tar":
        data = tar_of(BASE)
    else:
        data = oci(kind) if kind.startswith("oci") else docker(kind)
    with open(path, "wb") as out:
        out.write(data)


main()
