// What runs in the box in which an archive is parsed. Python's own tarfile does the parsing; no entry is ever
// extracted by it: the script puts together in memory which path has which content once all layers are
// applied in order, and writes the result as a stream (stream.h).
//
// Descriptor 3 is the archive, 4 the stream. On standard output stands one line: "ok", how many entries were
// left out because they are devices, or "refused: " and why.
#pragma once

namespace cofferdam::image {

constexpr const char* kUnpackScript = R"py(
import gzip, hashlib, io, json, lzma, os, posixpath, resource, sys, tarfile

MODE, MAX_BYTES, MAX_ENTRIES, MAX_DEPTH, MAX_MEMORY = sys.argv[1], *map(int, sys.argv[2:6])
REST = sys.argv[6:]
MAX_JSON = 4 << 20
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
NOT_NEEDED = ("usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/doc/",
              "usr/share/bug/")


class Refused(Exception):
    pass


def shown(name):
    return ascii(name)[1:-1][:300]


class Node:
    """What a path is: its kind, the layer that it is from, and a folder's children."""
    __slots__ = ("kind", "layer", "content", "size", "text", "children")

    def __init__(self, kind, layer, content=None, size=0, text=None):
        self.kind, self.layer, self.content, self.size, self.text = kind, layer, content, size, text
        self.children = {} if kind == "d" else None


class Slice(io.RawIOBase):
    """A part of the archive, with a position of its own."""

    def __init__(self, start, size):
        self.at, self.end = start, start + size

    def readable(self):
        return True

    def readinto(self, buffer):
        data = os.pread(3, min(len(buffer), self.end - self.at), self.at)
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


class Hashing(io.RawIOBase):
    """Passes reads on, and knows the digest and the number of bytes of everything that was read."""

    def __init__(self, source):
        self.source, self.digest = source, hashlib.sha256()

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.source.read(len(buffer))
        buffer[: len(data)] = data
        self.digest.update(data)
        return len(data)


class Layer:
    """A tar archive within the archive. `blob` and `plain` are digests that it must have, or None."""

    def __init__(self, start, size, blob=None, plain=None):
        self.start, self.size, self.blob, self.plain = start, size, blob, plain

    def read(self, entry):
        """Calls entry(index, member, file) for each; then the digests are compared."""
        raw = Hashing(io.BufferedReader(Slice(self.start, self.size)))
        source = io.BufferedReader(raw, 1 << 16)
        magic = source.peek(6)
        if magic[:4] == b"\x28\xb5\x2f\xfd":
            raise Refused("a layer is compressed with zstd, which is not read: save the image with gzip")
        if magic[:2] == b"\x1f\x8b":
            unpacked = gzip.GzipFile(fileobj=source)
        elif magic[:6] == b"\xfd7zXZ\x00":
            unpacked = lzma.LZMAFile(source)
        else:
            unpacked = source
        plain = Hashing(unpacked)
        stream = io.BufferedReader(plain, 1 << 16)
        with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
            for index, member in enumerate(tar):
                if index >= 2 * MAX_ENTRIES:
                    raise Refused(f"more than {2 * MAX_ENTRIES} entries in a layer")
                entry(index, member, tar)
                tar.members = []  # it would keep them all
        budget = 1 << 20  # of padding behind the archive's end
        while True:
            more = stream.read(1 << 16)
            if not more:
                break
            budget -= len(more)
            if budget < 0:
                raise Refused("a layer goes on behind its end")
        while source.read(1 << 16):
            pass
        for wanted, found in ((self.blob, raw), (self.plain, plain)):
            if wanted is not None and found.digest.hexdigest() != wanted:
                raise Refused(f"a layer is not what its digest {wanted[:12]} says")


def parts_of(name):
    """The plain components of an entry's name; [] is the root."""
    if "\x00" in name or name.startswith("/"):
        raise Refused(f"not a relative name: {shown(name)}")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f"a name leads out of the image: {shown(name)}")
    if len(parts) > MAX_DEPTH:
        raise Refused(f"too deep: {shown(name)}")
    if any(len(os.fsencode(part)) > 255 for part in parts) or len(os.fsencode(name)) > 4000:
        raise Refused(f"too long: {shown(name)}")
    return parts


class Tree:
    def __init__(self):
        self.root = Node("d", 0)
        self.count = self.bytes = self.dropped = 0

    def folder(self, parts, layer):
        """The folder at these parts, made if it is missing. A link on the way is never followed."""
        node = self.root
        for part in parts:
            below = node.children.get(part)
            if below is None:
                self.add()
                below = node.children[part] = Node("d", layer)
            elif below.kind != "d":
                raise Refused(f"an entry lies below what is no folder: {shown('/'.join(parts))}")
            node = below
        return node

    def find(self, parts):
        node = self.root
        for part in parts:
            if node is None or node.kind != "d":
                return None
            node = node.children.get(part)
        return node

    def add(self):
        self.count += 1
        if self.count > MAX_ENTRIES:
            raise Refused(f"more than {MAX_ENTRIES} files")

    def put(self, parts, node):
        if not parts:
            if node.kind != "d":
                raise Refused("the root is no folder")
            return
        parent = self.folder(parts[:-1], node.layer)
        old = parent.children.get(parts[-1])
        if old is not None and old.kind == "d" and node.kind == "d":
            old.layer = node.layer
            return
        if node.kind == "f" and node.size > MAX_BYTES:
            raise Refused(f"a file of {node.size} bytes")
        self.add()
        parent.children[parts[-1]] = node

    def clear(self, node, layer):
        """Removes what is from below this layer."""
        for name, child in list(node.children.items()):
            if child.kind == "d":
                self.clear(child, layer)
            if child.layer < layer and not child.children:
                del node.children[name]

    def white_out(self, parts, layer):
        """OCI image specification, layer.md: .wh.NAME hides NAME of the layers below, .wh..wh..opq all of them."""
        parent = self.find(parts[:-1])
        if parent is None or parent.kind != "d":
            return
        if parts[-1] == ".wh..wh..opq":
            self.clear(parent, layer)
            return
        name = parts[-1][4:]
        if name in ("", ".", ".."):
            raise Refused(f"a whiteout of nothing: {shown('/'.join(parts))}")
        child = parent.children.get(name)
        if child is None:
            return
        if child.kind == "d":
            self.clear(child, layer)
        if child.layer < layer and not child.children:
            del parent.children[name]

    def walk(self, node=None, path=""):
        node = node or self.root
        for name in sorted(node.children):
            child = node.children[name]
            below = path + "/" + name if path else name
            yield below, child
            if child.kind == "d":
                yield from self.walk(child, below)


def merged(parts):
    return ["usr"] + parts if parts and parts[0] in MERGED else parts


def index_layer(tree, number, layer, debian):
    def entry(index, member, _):
        parts = parts_of(member.name)
        if debian:
            parts = merged(parts)
            path = "/".join(parts) + "/"
            if path.startswith(NOT_NEEDED) and not path.endswith("/copyright/"):
                return
        elif parts and parts[-1].startswith(".wh."):
            if parts[-1].startswith(".wh..wh.") and parts[-1] != ".wh..wh..opq":
                return  # of AUFS, for itself
            tree.white_out(parts, number)
            return
        if member.isdir():
            tree.put(parts, Node("d", number))
        elif member.issym():
            text = member.linkname
            if not text or "\x00" in text or len(os.fsencode(text)) > 4000:
                raise Refused(f"a link to nothing: {shown(member.name)}")
            tree.put(parts, Node("l", number, text=text))
        elif member.islnk():
            target = parts_of(member.linkname)
            source = tree.find(merged(target) if debian else target)
            if source is None or source.kind not in "fx":
                raise Refused(f"a link to no file of the image: {shown(member.name)}")
            tree.put(parts, Node(source.kind, number, source.content, source.size))
        elif member.isreg():
            if member.size < 0 or member.size > MAX_BYTES:
                raise Refused(f"a file of {member.size} bytes: {shown(member.name)}")
            tree.put(parts, Node("x" if member.mode & 0o111 else "f", number, (number, index), member.size))
        else:
            tree.dropped += 1

    layer.read(entry)


class Writer:
    def __init__(self):
        self.out = io.BufferedWriter(io.FileIO(4, "w", closefd=False), 1 << 18)
        self.out.write(b"cofferdam-tree/1\0")

    def text(self, text):
        self.out.write(os.fsencode(text) + b"\0")

    def record(self, kind, *texts):
        self.out.write(kind)
        for text in texts:
            self.text(text)

    def file(self, kind, path, size, source):
        self.record(kind.encode(), str(size), path)
        while size:
            block = source.read(min(size, 1 << 18))
            if not block:
                raise Refused(f"a file ends early: {shown(path)}")
            self.out.write(block)
            size -= len(block)


def emit(tree, layers, generated):
    """Folders first and links last, so that no path ever leads through a link."""
    writer = Writer()
    names = {}
    links = []
    total = 0
    certificates = {}
    for path, node in tree.walk():
        if node.kind == "d":
            writer.record(b"d", path)
        elif node.kind == "l":
            links.append((path, node.text))
        else:
            held = names.setdefault(node.content, [])
            if not held:
                total += node.size
            held.append((path, node))
            if total > MAX_BYTES:
                raise Refused(f"more than {MAX_BYTES} bytes")
    for number, layer in enumerate(layers):
        def entry(index, member, tar, number=number):
            held = names.get((number, index))
            if not held:
                return
            path, node = held[0]
            source = tar.extractfile(member)
            if generated and path.startswith("usr/share/ca-certificates/"):
                certificates[path] = source.read(1 << 20)
                source = io.BytesIO(certificates[path])
            writer.file(node.kind, path, node.size, source)

        layer.read(entry)
    for held in names.values():
        for path, _ in held[1:]:
            writer.record(b"h", path, held[0][0])
    if certificates:
        bundle = b"".join(certificates[path] for path in sorted(certificates))
        writer.file("f", "etc/ssl/certs/ca-certificates.crt", len(bundle), io.BytesIO(bundle))
    for path, text in links:
        writer.record(b"l", path, text)
    writer.out.write(b"e")
    writer.out.flush()


# --- docker save, OCI layout -----------------------------------------------------------------------------------


class Archive:
    """The outer tar: name -> (start, size)."""

    def __init__(self):
        self.files = {}
        links = {}
        source = io.FileIO(3, "r", closefd=False)
        with tarfile.open(fileobj=source, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            for count, member in enumerate(tar):
                if count > 10000:
                    raise Refused("more than 10000 files in the archive")
                name = "/".join(parts_of(member.name))
                if member.isreg() and not member.issparse():
                    self.files[name] = (member.offset_data, member.size)
                elif member.issym():  # docker save before 25 repeats a layer so
                    links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        for name, target in links.items():
            if target in self.files:
                self.files[name] = self.files[target]

    def place(self, name):
        if not isinstance(name, str) or name not in self.files:
            raise Refused(f"the archive has no {shown(str(name))}")
        return self.files[name]

    def document(self, name, digest=None):
        start, size = self.place(name)
        if size > MAX_JSON:
            raise Refused(f"{shown(name)} is too large")
        data = Slice(start, size).read()
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            raise Refused(f"{shown(name)} is not what its digest says")
        return json.loads(data)


def hex_of(digest):
    text = digest[7:] if isinstance(digest, str) and digest.startswith("sha256:") else ""
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise Refused(f"not a SHA-256: {shown(str(digest))}")
    return text


def plain_digests(config, count):
    digests = [hex_of(one) for one in config["rootfs"]["diff_ids"]]
    if len(digests) != count:
        raise Refused("the configuration has another number of layers than the image")
    return digests


def docker_layers(archive):
    images = archive.document("manifest.json")
    if len(images) != 1:
        raise Refused(f"{len(images)} images in one archive: save one")
    name = images[0]["Config"]
    base = posixpath.basename(name)
    config = archive.document(name, hex_of("sha256:" + (base[:-5] if base.endswith(".json") else base)))
    digests = plain_digests(config, len(images[0]["Layers"]))
    return [Layer(*archive.place(layer), plain=digest) for layer, digest in zip(images[0]["Layers"], digests)]


def oci_layers(archive):
    def blob(digest):
        return "blobs/sha256/" + hex_of(digest)

    index = archive.document("index.json")
    for _ in range(3):
        if "manifests" not in index:
            break
        wanted = [one for one in index["manifests"]
                  if one.get("platform", {}).get("architecture", "amd64") == "amd64"
                  and one.get("platform", {}).get("os", "linux") == "linux"]
        if len(wanted) != 1:
            raise Refused(f"{len(wanted)} images for linux/amd64 in one archive: save one")
        index = archive.document(blob(wanted[0]["digest"]), hex_of(wanted[0]["digest"]))
    config = archive.document(blob(index["config"]["digest"]), hex_of(index["config"]["digest"]))
    digests = plain_digests(config, len(index["layers"]))
    return [Layer(*archive.place(blob(layer["digest"])), blob=hex_of(layer["digest"]), plain=digest)
            for layer, digest in zip(index["layers"], digests)]


def image_layers():
    archive = Archive()
    if "manifest.json" in archive.files:
        layers = docker_layers(archive)
    elif "index.json" in archive.files:
        layers = oci_layers(archive)
    else:
        raise Refused("neither a docker save archive nor an OCI layout: no manifest.json, no index.json")
    if not 1 <= len(layers) <= 512:
        raise Refused(f"{len(layers)} layers")
    return layers


# --- Debian packages, one behind the other ---------------------------------------------------------------------


def package_layer(start, size):
    """The data.tar of a package: deb(5), ar(5)."""
    end = start + size
    if os.pread(3, 8, start) != b"!<arch>\n":
        raise Refused("not a Debian package")
    at = start + 8
    while at + 60 <= end:
        head = os.pread(3, 60, at)
        length = int(head[48:58])
        if head[58:60] != b"`\n" or length < 0 or at + 60 + length > end:
            raise Refused("a damaged Debian package")
        if head[:16].startswith(b"data.tar"):
            return Layer(at + 60, length)
        at += 60 + length + length % 2
    raise Refused("a Debian package without content")


def package_layers():
    at = 0
    for size in (int(one) for one in REST if not one.startswith("link:")):
        yield package_layer(at, size)
        at += size


def add_links(tree, number):
    """Merged /usr, and the links that a package's own scripts would make."""
    for name in MERGED:
        if tree.find(["usr", name]) is not None:
            tree.put([name], Node("l", number, text="usr/" + name))
    for one in REST:
        if one.startswith("link:"):
            _, path, text = one.split(":", 2)
            if tree.find(parts_of(path)) is None:
                tree.put(parts_of(path), Node("l", number, text=text))


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    sys.setrecursionlimit(2000)
    debian = MODE == "debian"
    layers = list(package_layers()) if debian else image_layers()
    tree = Tree()
    for number, layer in enumerate(layers):
        index_layer(tree, number, layer, debian)
    if debian:
        add_links(tree, len(layers))
        if tree.find(["usr", "share", "ca-certificates"]) is not None:
            tree.folder(["etc", "ssl", "certs"], len(layers))
    usr = tree.find(["usr"])
    if usr is None or usr.kind != "d":
        raise Refused("no folder usr in the image")
    emit(tree, layers, debian)
    return f"ok {tree.dropped}"


try:
    print(main())
except Refused as problem:
    print(f"refused: {problem}")
except MemoryError:
    print("refused: it takes too much memory")
except OSError as problem:
    print(f"refused: {problem.strerror or type(problem).__name__}")
except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, AttributeError, IndexError,
        RecursionError, OverflowError) as problem:
    print(f"refused: not a well-formed archive ({type(problem).__name__}: {shown(str(problem))})")
except BaseException as problem:  # zlib.error, and whatever else hostile bytes bring about
    print(f"refused: not a well-formed archive ({type(problem).__name__})")
)py";

}  // namespace cofferdam::image
