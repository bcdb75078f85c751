#!/usr/bin/env python3
"""Every test that tests/attacks.md names exists, and every row names one."""
import pathlib
import re
import sys

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
ROW = re.compile(r"^\| ([A-Z]\d+(?:, [A-Z]\d+)*) \| .* \| (.*) \|$")


def defined(tests: pathlib.Path) -> set[str]:
    return {f"{suite}.{name}" for path in tests.rglob("*.cc") for suite, name in TEST.findall(path.read_text())}


def faults(table: str, known: set[str]) -> list[str]:
    found, rows = [], 0
    for line in table.splitlines():
        row = ROW.match(line)
        if not row:
            continue
        rows += 1
        names = re.findall(r"`([\w.]+)`", row.group(2))
        found += [f"{row.group(1)}: no test is named"] if not names else []
        found += [f"{row.group(1)}: there is no test {name}" for name in names if name not in known]
    return found if rows else ["no row was found"]


def main() -> int:
    tests = pathlib.Path(sys.argv[1])
    known = defined(tests)
    # The control: this very check sees a name that is none, an empty row, and a table without rows.
    broken = "| D1 | x | `No.SuchTest` |\n| D2 | y |  |\n"
    if len(faults(broken, known)) != 2 or not faults("", known):
        print("check_attacks.py finds nothing any more")
        return 1
    found = faults((tests / "attacks.md").read_text(), known)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
