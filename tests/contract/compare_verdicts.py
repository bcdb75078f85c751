"""compare_verdicts.py EXCEPTIONS OUT: fails when a judge differs from the decoder and the table does not say so."""

import pathlib
import sys

JUDGES = ("ajv", "jsonschema")


def read_verdicts(path):
    return dict(line.split(" ") for line in path.read_text(encoding="utf-8").splitlines())


def read_exceptions(path):
    """{(judge, document)}: pairs of which the decoder refuses the document and the judge accepts it."""
    out = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        document, judges, reason = line.split("\t")
        assert reason.strip(), f"no reason: {line}"
        out |= {(judge, document) for judge in (JUDGES if judges == "both" else (judges,))}
    return out


def main():
    exceptions, out = read_exceptions(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    decoder = read_verdicts(out / "decoder.txt")
    problems, used = [], set()
    for judge in JUDGES:
        verdicts = read_verdicts(out / f"{judge}.txt")
        if verdicts.keys() != decoder.keys():
            problems.append(f"{judge} did not judge the same documents")
        for document, ours in decoder.items():
            theirs = verdicts.get(document)
            if theirs == ours:
                continue
            if ours == "refuse" and (judge, document) in exceptions:
                used.add((judge, document))
                continue
            problems.append(f"{document}: the decoder says {ours}, {judge} says {theirs}")
    problems += [f"exceptions.tsv: {judge} agrees on {document} by now" for judge, document in sorted(exceptions - used)]
    for problem in problems:
        print(problem)
    accepted = sum(verdict == "accept" for verdict in decoder.values())
    print(f"{len(decoder)} documents, {accepted} accepted, {len(used)} listed differences, {len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
