"""Merges what the suite counted into the table of docs/developing/cases.md, and checks it.

usage: case_table.py FOLDER BLANK DOC BACKEND... [--write]
FOLDER has one file `cases.BACKEND` for each backend (lines "CASE ASSERTIONS"), written by the suite.
Fails on an empty cell without a reason in BLANK, on a reason for a cell that is filled, and, without
--write, when the set of filled cells in DOC is another.
"""
import pathlib
import re
import sys

CASES = [f"T{i}" for i in range(1, 35)]


def main(folder, blank, doc, backends, write):
    counted = {}
    for b in backends:
        path = pathlib.Path(folder) / f"cases.{b}"
        if not path.exists():
            sys.exit(f"{path} is missing: run `ctest -L conformance` first")
        counted[b] = dict(line.split() for line in path.read_text().splitlines())
    # A reason for `*` is for every cell that is empty; one for a backend is for that cell, which must be.
    reasons, general = {}, {}
    for line in pathlib.Path(blank).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            case, backend, reason = line.split(None, 2)
            if backend == "*":
                general[case] = reason
            else:
                reasons[case, backend] = reason
    for case, reason in general.items():
        for b in backends:
            if case not in counted[b]:
                reasons.setdefault((case, b), reason)
    wrong = []
    described = re.findall(r"^\| (T\d+) \|", (pathlib.Path(__file__).parent / "README.md").read_text(), re.M)
    if described != CASES:
        wrong.append("README.md does not describe each case once, in order")
    rows = []
    unknown = {b for _, b in reasons} - set(backends)
    wrong += [f"blank.txt knows {b}, which no backend is called" for b in sorted(unknown)]
    for case in CASES:
        cells = []
        for b in backends:
            n, why = counted[b].get(case), reasons.get((case, b))
            if n is None and why is None:
                wrong.append(f"{case} {b}: nothing was asserted, and blank.txt has no reason")
            if n is not None and why is not None:
                wrong.append(f"{case} {b}: has {n} assertions, and a reason to be empty")
            cells.append(n or "")
        print(case.ljust(4), *[c.rjust(12) for c in cells])
        rows.append([case] + cells)
    text = ["| case | " + " | ".join(backends) + " |", "|---" * (len(backends) + 1) + "|"]
    text += ["| " + " | ".join(r) + " |" for r in rows]
    notes = [f"- {c} {b}: {why}" for (c, b), why in reasons.items() if general.get(c) != why]
    notes += [f"- {c}: {why}" for c, why in general.items()]
    notes.sort(key=lambda n: int(re.match(r"- T(\d+)", n)[1]))
    path = pathlib.Path(doc)
    old = path.read_text() if path.exists() else ""
    new = ("# Conformance cases by backend\n\nNumber of assertions that the conformance suite made for each "
           "case in the run that wrote this page (`tests/conformance/case_table.py --write`). The test "
           "`case-table` fails if another cell is empty. [The suite's page](../../tests/conformance/README.md) "
           "describes the cases.\n\n"
           + "\n".join(text) + "\n\n## Empty cells\n\n" + "\n".join(notes) + "\n")
    if write:
        path.write_text(new)
    else:
        filled = lambda t: re.sub(r"\d+(?= \|)", "n", "\n".join(
            l for l in t.splitlines() if l.startswith("| T")))
        if filled(old) != filled(new):
            wrong.append(f"{doc} shows other cells: run case_table.py with --write")
    for w in wrong:
        print(w)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "--write"]
    main(*words[:3], words[3:], "--write" in sys.argv)
