#!/usr/bin/env python3
"""Holds the table "Who may include whom" of ARCHITECTURE.md over the sources and over the objects of
cofferdam-init.

  check_includes.py --root DIR --nm NM --objects FILE...    the real tree
  check_includes.py --self-test                             shows that each rule can fail

A rule is a function from a tree (path -> text) to problems. The tables below are the architecture: a change of
them is a change of it.
"""

import argparse
import pathlib
import re
import subprocess
import sys

STAGES = {"clone", "workspace", "sandbox", "egress", "agent", "settle", "handoff"}

# Whom a folder of src/ may include beside itself. Stages never include one another.
MAY_INCLUDE = {
    "base": set(),
    "contract": {"base"},
    "git": {"base"},
    "ledger": {"base", "contract"},
    "image": {"base", "contract"},
    "clone": {"base", "contract", "git"},
    "handoff": {"base", "contract", "git"},
    "workspace": {"base", "contract", "init"},
    "sandbox": {"base", "contract", "init"},
    "egress": {"base", "contract"},
    "agent": {"base", "contract"},
    "settle": {"base", "contract"},
    "attempt": {"base", "contract", "ledger", "image"} | STAGES,
    "gate": {"base", "contract", "init", "sandbox", "workspace", "attempt"},
    "cli": {"base", "contract", "ledger", "attempt", "image", "gate"},
    "init": set(),
    "probe": set(),
}

# One verb each needs one stage.
ALSO = {
    "src/cli/verb_df.cc": {"clone"},
    "src/cli/verb_prune.cc": {"clone"},
    "src/cli/verb_run.cc": {"clone"},
    "src/cli/verb_diff.cc": {"handoff"},
    "src/cli/verb_internal.cc": {"egress", "handoff"},
}

# The host's half of the init protocol: the one part of src/init that stands on base.
INIT_CLIENT = {"src/init/client.cc", "src/init/client.h"}
INIT_INTERFACE = {"init/client.h", "init/plan.h"}

# Third-party headers, and the files (or folders, with a slash at the end) of src/ that may include them.
THIRD_PARTY = {
    "nlohmann/": ["src/contract/json.h"],
    "toml++/": ["src/contract/config.cc"],
    "CLI/": ["src/cli/parse.cc"],
    "boost/": ["src/egress/"],
    "SQLiteCpp/": ["src/ledger/"],
    "sqlite3.h": ["src/ledger/"],
    "openssl/": ["src/base/", "src/egress/"],
    "seccomp.h": ["src/sandbox/native/", "src/egress/gateway_filter.cc"],
}

MAX_LINES = 600
PROGRAM_TEXT = {".cc", ".h", ".py", ".sh", ".mjs", ".txt"}
NOT_OURS = {"node_modules", "__pycache__"}

SPAWNING = re.compile(r"\b(?:(?:fork|popen|system)\s*\(|vfork\b|posix_spawnp?\b)")

# Names in what `nm --demangle` prints.
FOREIGN_SYMBOL = re.compile(
    r"(?<!\w)(?:(?:fmt|nlohmann|boost|toml|CLI|SQLite)::"
    r"|cofferdam::(?!init::|plan::)"
    r"|(?:sqlite3|seccomp|SSL|EVP|CRYPTO|OPENSSL|ERR|BIO|PEM|RAND|X509)_\w)"
)

TOKEN = re.compile(
    r"(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|(?P<raw>R"(?P<delimiter>[^ ()\\\n]*)\(.*?\)(?P=delimiter)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<number>\b\d[\w.']*)"
    r"|(?P<char>'(?:\\.|[^'\\\n])+')",
    re.DOTALL,
)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*([^\n]*)", re.MULTILINE)


def without(text, *kinds):
    """The text with tokens of these kinds blanked; its lines stay where they are."""

    def blank(match):
        if match.lastgroup not in kinds and not ("raw" in kinds and match.group("raw")):
            return match.group()
        return " " + "\n" * match.group().count("\n")

    return TOKEN.sub(blank, text)


def is_cpp(path):
    return path.endswith((".cc", ".h"))


def folder_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else ""


def includes(tree):
    """(path, line, header) of every #include in src/; the header is "" when it is a macro."""
    for path in sorted(tree):
        if not (is_cpp(path) and path.startswith("src/")):
            continue
        text = without(tree[path], "comment", "raw")
        for match in INCLUDE.finditer(text):
            name = re.match(r'["<]([^">]+)[">]', match.group(1))
            line = text.count("\n", 0, match.start()) + 1
            yield path, line, name.group(1) if name else "", match.group(1).startswith('"')


def allowed(path):
    if path in INIT_CLIENT:
        return {"base"}
    return MAY_INCLUDE.get(folder_of(path), set()) | ALSO.get(path, set())


def check_folders(tree):
    """Every folder of src/ has a row in the table."""
    folders = {folder_of(path) for path in tree if is_cpp(path)} - {""}
    for folder in sorted(folders - set(MAY_INCLUDE)):
        yield f"src/{folder}: has no row in the table of who may include whom"


def check_names(tree):
    """An include that the table could not judge: a macro, or a path that does not start at src/."""
    for path, line, header, quoted in includes(tree):
        if not header:
            yield f"{path}:{line}: an include must name its file"
        elif ".." in header.split("/") or (quoted and f"src/{header}" not in tree):
            yield f'{path}:{line}: "{header}" is no file of src/'


def check_layers(tree):
    for path, line, header, _ in includes(tree):
        mine, theirs = folder_of(path), header.split("/")[0]
        if "/" not in header or theirs not in MAY_INCLUDE or theirs == mine:
            continue
        if theirs not in allowed(path):
            yield f'{path}:{line}: {mine} must not include "{header}"'


def check_init(tree):
    """Of init the host sees the interface only; inside the box nothing sees the host's half."""
    for path, line, header, _ in includes(tree):
        if folder_of(path) == "init":
            if path not in INIT_CLIENT and header == "init/client.h":
                yield f"{path}:{line}: the host's half must not be in cofferdam-init"
            if path not in INIT_CLIENT and header.startswith("fmt/"):
                yield f"{path}:{line}: <{header}> must not be in cofferdam-init"
        elif header.startswith("init/") and header not in INIT_INTERFACE:
            yield f'{path}:{line}: "{header}" is inside cofferdam-init'


def check_third_party(tree):
    for path, line, header, _ in includes(tree):
        for library, places in THIRD_PARTY.items():
            if not (header.startswith(library) if library.endswith("/") else header == library):
                continue
            if not any(path.startswith(place) if place.endswith("/") else path == place for place in places):
                yield f"{path}:{line}: <{header}> belongs in {', '.join(places)} only"


def check_spawning(tree):
    for path in sorted(tree):
        inside = folder_of(path) in {"init", "probe"} and path not in INIT_CLIENT
        if not (is_cpp(path) and path.startswith("src/")) or inside or path == "src/base/process.cc":
            continue
        text = without(tree[path], "comment", "raw", "string", "char")
        for match in SPAWNING.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group()}: only base/process.cc starts processes"


def check_length(tree):
    for path in sorted(tree):
        lines = tree[path].count("\n")
        if lines > MAX_LINES:
            yield f"{path}: {lines} lines; at most {MAX_LINES}"


def check_symbols(symbols):
    """`symbols`: object -> output of nm --demangle, defined symbols too: header-only libraries have no other."""
    if not symbols:
        yield "no object of cofferdam-init was given"
    for name in sorted(symbols):
        if not symbols[name].strip():
            yield f"{name}: has no symbols"
        for line in symbols[name].splitlines():
            symbol = re.sub(r"^[0-9a-fA-F]*\s*[A-Za-z?]\s+", "", line)
            if FOREIGN_SYMBOL.search(symbol):
                yield f"{name}: {symbol}: foreign to cofferdam-init"


TREE_RULES = [
    check_folders,
    check_names,
    check_layers,
    check_init,
    check_third_party,
    check_spawning,
    check_length,
]


def problems_in(tree, symbols):
    found = [(rule, problem) for rule in TREE_RULES for problem in rule(tree)]
    return found + [(check_symbols, problem) for problem in check_symbols(symbols)]


def read_tree(root):
    tree = {}
    for top in ("src", "tests"):
        for path in sorted((root / top).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in PROGRAM_TEXT or not path.is_file() or NOT_OURS & set(relative.parts):
                continue
            tree[relative.as_posix()] = path.read_text(encoding="utf-8")
    if "src/base/process.cc" not in tree:
        raise SystemExit(f"{root} is not the source tree")
    return tree


def read_symbols(nm, objects):
    def ask(path):
        return subprocess.run([nm, "--demangle", path], check=True, capture_output=True, text=True).stdout

    return {pathlib.PurePath(path).name: ask(path) for path in objects}


# --- the self-test -------------------------------------------------------------------------------------------

CLEAN_TREE = {
    "src/base/io.h": "#include <string>\n",
    "src/base/process.cc": '#include "base/io.h"\npid_t pid = ::fork();\n',
    "src/contract/json.h": '#include <nlohmann/json.hpp>\n#include "base/io.h"\n',
    "src/contract/config.cc": "#include <toml++/toml.h>\n",
    "src/git/git.h": "",
    "src/ledger/sql.h": "#include <SQLiteCpp/SQLiteCpp.h>\n",
    "src/clone/clone.h": '#include "git/git.h"\n',
    "src/workspace/storage.cc": '#include "init/client.h"\n#include "contract/json.h"\n',
    "src/sandbox/native/filter.cc": "#include <seccomp.h>\n",
    "src/egress/relay.h": "#include <boost/asio/write.hpp>\n#include <openssl/ssl.h>\n",
    "src/handoff/store.h": "",
    "src/handoff/snapshot_script.h": 'const char* script = R"(\n#include "clone/clone.h"\nsystem(1)\n)";\n',
    "src/attempt/run.h": '#include "clone/clone.h"\n#include "handoff/store.h"\n#include "ledger/sql.h"\n',
    "src/cli/parse.cc": '#include <CLI/CLI.hpp>\n#include "attempt/run.h"\n',
    "src/cli/verb_diff.cc": '#include "handoff/store.h"\nconst int big = 1\'000;  // fork() is elsewhere\n',
    "src/init/client.h": '#include "base/io.h"\n#include "init/plan.h"\n',
    "src/init/plan.h": "#include <vector>\n",
    "src/init/sys.h": "",
    "src/init/box.cc": '#include "init/plan.h"\npid_t pid = ::fork();\nadd_system(layout);\n',
    "tests/unit/egress/vendor.cc": "#include <boost/asio/write.hpp>\n" + "\n" * (MAX_LINES - 1),
}
CLEAN_SYMBOLS = {
    "box.cc.o": "                 U cofferdam::init::load_seccomp(std::string const&)\n"
    "                 U fork\n"
    "0000000000000000 W void cofferdam::plan::plan_fields<cofferdam::plan::Encoder>()\n"
}

# Each one added to the clean tree breaks exactly this rule.
BROKEN_TREES = [
    (check_folders, "src/server/http.cc", "", "src/server: has no row"),
    (check_names, "src/base/a.cc", '#include "io.h"\n', '"io.h" is no file of src/'),
    (check_names, "src/base/a.cc", '#include "../base/io.h"\n', "no file of src/"),
    (check_names, "src/base/a.cc", "#include WHATEVER\n", "must name its file"),
    (check_layers, "src/base/a.cc", '#include "contract/json.h"\n', "base must not include"),
    (check_layers, "src/base/a.cc", "#include <contract/json.h>\n", "base must not include"),
    (check_layers, "src/contract/a.cc", '  #  include "git/git.h"\n', "contract must not include"),
    (check_layers, "src/git/a.cc", '#include "contract/json.h"\n', "git must not include"),
    (check_layers, "src/ledger/a.cc", '#include "attempt/run.h"\n', "ledger must not include"),
    (check_layers, "src/workspace/a.cc", '#include "git/git.h"\n', "workspace must not include"),
    (check_layers, "src/handoff/a.cc", "/* a\n */\n" '#include "clone/clone.h"\n', "a.cc:3: handoff must not"),
    (check_layers, "src/settle/a.cc", '#include "ledger/sql.h"\n', "settle must not include"),
    (check_layers, "src/attempt/a.cc", '#include "init/plan.h"\n', "attempt must not include"),
    (check_layers, "src/cli/a.cc", '#include "handoff/store.h"\n', "cli must not include"),
    (check_layers, "src/init/a.cc", '#include "base/io.h"\n', "init must not include"),
    (check_layers, "src/init/client.cc", '#include "contract/json.h"\n', "init must not include"),
    (check_init, "src/init/a.cc", '#include "init/client.h"\n', "the host's half"),
    (check_init, "src/init/a.cc", "#include <fmt/core.h>\n", "must not be in cofferdam-init"),
    (check_init, "src/sandbox/native/a.cc", '#include "init/sys.h"\n', "is inside cofferdam-init"),
    (check_third_party, "src/attempt/a.cc", "#include <nlohmann/json.hpp>\n", "src/contract/json.h only"),
    (check_third_party, "src/contract/a.cc", "#include <toml++/toml.h>\n", "src/contract/config.cc only"),
    (check_third_party, "src/cli/a.cc", "#include <CLI/CLI.hpp>\n", "src/cli/parse.cc only"),
    (check_third_party, "src/agent/a.cc", "#include <boost/asio/write.hpp>\n", "src/egress/ only"),
    (check_third_party, "src/cli/a.cc", "#include <SQLiteCpp/SQLiteCpp.h>\n", "src/ledger/ only"),
    (check_third_party, "src/cli/a.cc", "#include <sqlite3.h>\n", "src/ledger/ only"),
    (check_third_party, "src/cli/a.cc", "#include <openssl/evp.h>\n", "src/base/, src/egress/ only"),
    (check_third_party, "src/init/a.cc", "#include <seccomp.h>\n", "src/sandbox/native/, src/egress/gateway_filter.cc only"),
    (check_spawning, "src/agent/a.cc", "int pid = ::fork();\n", "a.cc:1: fork("),
    (check_spawning, "src/agent/a.cc", "auto call = &vfork;\n", "vfork"),
    (check_spawning, "src/agent/a.cc", 'auto pipe = popen ("x", "r");\n', "popen ("),
    (check_spawning, "src/agent/a.cc", 'std::system("x");\n', "system("),
    (check_spawning, "src/agent/a.cc", "posix_spawnp(&pid);\n", "posix_spawnp"),
    (check_spawning, "src/init/client.cc", "::fork();\n", "fork("),
    (check_length, "tests/unit/a.cc", "\n" * (MAX_LINES + 1), "601 lines"),
    (check_length, "src/base/a.cc", "\n" * (MAX_LINES + 1), "601 lines"),
]

BROKEN_SYMBOLS = [
    "                 U fmt::v9::vformat[abi:cxx11]()\n",
    "0000000000000000 W nlohmann::basic_json<>::type() const\n",
    "0000000000000000 W void boost::asio::detail::run()\n",
    "                 U EVP_DigestInit_ex\n",
    "                 U SSL_new\n",
    "                 U sqlite3_open\n",
    "                 U SQLite::Database::exec(char const*)\n",
    "                 U seccomp_load\n",
    "                 U cofferdam::spawn(cofferdam::SpawnOptions const&)\n",
    "                 U cofferdam::init_client::receive(int)\n",
    "",
]


def self_test():
    failures = []

    def expect(what, tree, symbols, rule, part):
        found = problems_in(tree, symbols)
        if rule is None and found:
            failures.append(f"{what}: should be clean: {found}")
        elif rule is not None and ({r for r, _ in found} != {rule} or not any(part in p for _, p in found)):
            failures.append(f"{what}: {rule.__name__} should have said '{part}': {found}")

    expect("clean", CLEAN_TREE, CLEAN_SYMBOLS, None, "")
    for rule, path, text, part in BROKEN_TREES:
        expect(f"{path}: {text[:60]!r}", {**CLEAN_TREE, path: text}, CLEAN_SYMBOLS, rule, part)
    for text in BROKEN_SYMBOLS:
        expect(repr(text), CLEAN_TREE, {**CLEAN_SYMBOLS, "a.o": text}, check_symbols, "a.o: ")
    expect("no objects", CLEAN_TREE, {}, check_symbols, "no object")
    untried = set(TREE_RULES) - {rule for rule, *_ in BROKEN_TREES}
    failures += [f"{rule.__name__}: no case shows that it can fail" for rule in untried]
    return failures


def main():
    parser = argparse.ArgumentParser(description="who may include whom")
    parser.add_argument("--root", type=pathlib.Path)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--objects", nargs="*", default=[])
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        problems = self_test()
    elif options.root is None:
        parser.error("--root or --self-test is needed")
    else:
        symbols = read_symbols(options.nm, options.objects)
        problems = [problem for _, problem in problems_in(read_tree(options.root), symbols)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
