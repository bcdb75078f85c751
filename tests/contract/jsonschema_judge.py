"""jsonschema_judge.py CONTRACTS OUT: one line "NAME accept|refuse" for every document named in OUT/decoder.txt."""

import functools
import json
import pathlib
import sys

import jsonschema

CONTRACTS, OUT = (pathlib.Path(argument) for argument in sys.argv[1:3])


@functools.lru_cache(maxsize=None)
def validator(kind):
    schema = json.loads((CONTRACTS / f"{kind}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@functools.lru_cache(maxsize=None)
def mutants(file):
    return (OUT / file).read_bytes().split(b"\n")


def document(name):
    """The kind and the bytes of "fixtures/KIND/valid/x.json" or "mutants/KIND.ndjson:LINE"."""
    if name.startswith("fixtures/"):
        return name.split("/")[1], (CONTRACTS / name).read_bytes()
    file, line = name.split(":")
    return pathlib.Path(file).stem, mutants(file)[int(line) - 1]


def verdict(kind, data):
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return "refuse"
    return "accept" if validator(kind).is_valid(value) else "refuse"


for row in (OUT / "decoder.txt").read_text(encoding="utf-8").splitlines():
    item = row.split(" ")[0]
    print(item, verdict(*document(item)))
