#!/usr/bin/env python3
"""The page of the kept soak runs: docs/developing/soak/README.md from the JSON files beside it.

usage: page.py FOLDER           compares; exit 1 when the page is not what the files say
       page.py FOLDER --write   writes it anew
"""
import json
import pathlib
import sys


def page(runs, conditions):
    uncounted = "–"
    out = ["# Soak: faults for a while, and what became of the locks", "",
           "Written by `tests/soak/run --keep`. Four processes of six threads each take and give back locks on a real deployment.",
           "Each process reaches the servers through proxies of its own, which cut, delay, swallow and hold back what passes;",
           "processes are stopped and killed, and so are servers. Only faults that the deployment's safety class survives are",
           "made. Every process writes down what it did, and the [checker](../../../bench/checker/README.md) judges all of it:",
           "two holders, tokens that go back, wrong words about the holder before. At the end everything is healed, and within 45 s",
           "no name may be held or waited for. A call is *late* when it ends more than a second after its bound, stalls of its",
           "process left out. A *forgotten release*: PostgreSQL declares that it syncs a release up to three times `wal_writer_delay`",
           "(600 ms) after its answer; a kill in that time takes it back, and the next holder is told that the one before has crashed.",
           "Without a kill so near, or of any other deployment, the same words are a broken promise. As a control the servers lose their",
           "data while a holder is cut off; that has to be caught.", "",
           "| deployment | minutes | seed | commit | faults (kinds) | granted | two holders | tokens back | other broken promises | forgotten releases | left at the end | late calls | control: two holders |",
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for run in runs:
        counts = run["history"]["counts"]
        overlaps = counts.get("overlap", 0) + counts.get("within_validity", 0)
        tokens = counts.get("token_order", 0) + counts.get("token_repeated", 0) + counts.get("token_missing", 0)
        control = run["control"]["counts"]
        out.append(f"| {run['backend']} | {run['seconds'] / 60:.0f} | {run['seed']} | {run['commit']}"
                   f" | {run['fault_count']:,} ({len(run['faults'])}) | {run['acquired']:,} | {overlaps} | {tokens}"
                   f" | {counts.get('previous_holder', 0)} | {counts.get('release_forgotten', uncounted)}"
                   f" | {run['left']} | {run['calls'].get('late', 0)}"
                   f" | {control.get('overlap', 0) + control.get('within_validity', 0)} |")
    if any("release_forgotten" not in run["history"]["counts"] for run in runs):
        out += ["", f"{uncounted}: judged before forgotten releases were counted apart, so that they are among the other broken promises. What the",
                "processes wrote down is not kept, so that these runs cannot be judged again."]
    if conditions:
        out += ["", conditions.strip()]
    for run in runs:
        calls = run["calls"]
        out += ["", f"## {run['backend']}", "", f"{run['deployment']}. Calls that ended without a lock: "
                f"{calls.get('contended', 0):,} busy, {calls.get('cancelled', 0):,} cancelled, {calls.get('in_doubt', 0):,}"
                f" in doubt, {calls.get('failed', 0):,} for other reasons. Leases lost: {calls.get('lost', 0):,}.", "",
                "| fault | times |", "|---|---|"]
        out += [f"| {kind} | {count} |" for kind, count in sorted(run["faults"].items())]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    runs = sorted((json.loads(f.read_text()) for f in folder.glob("*.json")), key=lambda r: r["backend"])
    conditions = folder / "conditions.txt"
    words = conditions.read_text() if conditions.exists() else ""
    text, target = page(runs, words), folder / "README.md"
    if sys.argv[2:] == ["--write"]:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        sys.exit(f"{target} is not what its files say: tests/soak/page.py {folder} --write")


if __name__ == "__main__":
    main()
