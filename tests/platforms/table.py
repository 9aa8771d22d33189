#!/usr/bin/env python3
"""The platforms of docs/compatibility.md, made from docs/platforms.json, which runs of tests/platforms/run write.

usage: table.py             compares; exit 1 and the difference when the page has something else
       table.py --write     writes the table anew
       table.py --selftest  what did not run whole, or failed, gets no tick
       table.py --facts     what is installed here, as JSON
       table.py --record NAME FACTS FILTER REPORT...   keeps what one run has found (ctest's reports), and writes the table;
                            with a FILTER, tests of a kept run of the whole suite with the same versions are replaced
"""
import collections
import copy
import datetime
import difflib
import importlib.util
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEPT, PAGE = ROOT / "docs/platforms.json", ROOT / "docs/compatibility.md"
BEGIN, END = "<!-- platforms: tests/platforms/table.py --write -->", "<!-- end of platforms -->"
NAMES = {"debian-12-clang": "Debian 12, clang", "debian-13": "Debian 13", "debian-13-clang": "Debian 13, clang, C++23",
         "arm64": "Debian 12, arm64 (under qemu)"}
# What most of the suite is about comes first.
SHOWN = ("Boost", "hiredis", "libpqxx", "MariaDB Connector/C", "Redis", "Valkey", "PostgreSQL", "MariaDB", "etcd", "ZooKeeper servers")
# Where tests/platforms/run starts no servers, and what is built without their clients.
SERVERLESS = {"arm64": ("Boost", "SQLite")}


def facts():
    """{what: its version here}, of what is installed."""
    path = ROOT / "tests/docs/versions.py"
    spec = importlib.util.spec_from_file_location("versions", path)
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    compiler = "g++ -dumpfullversion || aarch64-linux-gnu-g++ -dumpfullversion"
    asked = versions.ASKED | {"compiler": ["sh", "-c", compiler], "Valkey": ["valkey-server", "--version"], "clang": ["clang++", "--version"],
                              "PostgreSQL": ["sh", "-c", "ls /usr/lib/postgresql | sort -n | tail -n 1 | sed 's/$/.0/'"],
                              "Debian": ["cat", "/etc/debian_version"]}
    found = {}
    for what, command in asked.items():
        try:
            found[what] = versions.version_here(command)
        except (OSError, TypeError, subprocess.CalledProcessError):
            continue  # not installed
    return found | {"machine": subprocess.check_output(["uname", "-m"], text=True).strip()}


def ran_in(reports):
    """{(part, test): whether it passed} of ctest's reports; what ran with Valkey is a part by itself. Of a test that several
    have, the last one counts."""
    ran = {}
    for report in map(pathlib.Path, reports):
        run = report.name.split(".")[0]  # of "suite.ctest.xml"
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            name = case.get("name")
            ran[run if run != "suite" else name.split(".")[0], name] = case.get("status") == "run"
    return ran


def results(ran):
    """{part: {"passed": n, "failed": [test]}}"""
    parts = collections.defaultdict(lambda: {"passed": 0, "failed": []})
    for (part, name), good in ran.items():
        if good:
            parts[part]["passed"] += 1
        else:
            parts[part]["failed"].append(name)
    return parts


def short(version):
    return ".".join(version.split(".")[:2])


def row(name, run):
    versions = run["versions"]
    clang = "clang" in name
    compiler = f"clang {short(versions['clang'])}" if clang else f"g++ {short(versions['compiler'])}"
    passed = sum(part["passed"] for part in run["parts"].values())
    failed = [test for part in run["parts"].values() for test in part["failed"]]
    parts = ", ".join(sorted(f"{part} {len(r['failed']) + r['passed']}" for part, r in run["parts"].items()))
    said = f"{passed} passed" + (f", {len(failed)} failed: " + ", ".join(f"`{test}`" for test in failed) if failed else "")
    if run.get("again"):
        said += ", of which again, after a repair: " + ", ".join(f"`{test}` ({date})" for test, date in sorted(run["again"].items()))
    if run["filter"]:
        said += " (of the suite only " + run["filter"].replace("|", "\\|") + ")"
    tick = "✓ " if passed and not failed and not run["filter"] else ""
    what = ", ".join(f"{what} {short(versions[what]).removesuffix('.0') if what == 'PostgreSQL' else short(versions[what])}"
                     for what in SERVERLESS.get(name, SHOWN) if what in versions)
    return f"| {NAMES[name]} | {compiler} | {what} | {run['date']} | {tick}{said} | {parts} |"


def table(kept):
    lines = ["| platform | compiler | with | run on | tests | of which |", "|---|---|---|---|---|---|"]
    lines += [row(name, kept[name]) if name in kept else f"| {NAMES[name]} | | | not run | | |" for name in NAMES]
    return "\n".join(lines)


def page_with(text, kept):
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(kept)}\n{END}{rest.split(END)[1]}"


def read():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def replaced(whole, ran, date):
    """A run of the whole suite in which these tests have another result now."""
    parts = copy.deepcopy(whole["parts"])
    for (part, test), good in ran.items():
        failed = parts[part]["failed"]
        parts[part]["passed"] += good - (test not in failed)
        parts[part]["failed"] = [t for t in failed if t != test] + ([] if good else [test])
    again = dict(whole.get("again", {})) | {test: date for _, test in ran}
    return whole | {"parts": parts, "again": again}


def record(name, found, only, *reports):
    kept = read()
    date, ran = datetime.date.today().isoformat(), ran_in(reports)
    versions = json.loads(pathlib.Path(found).read_text())
    whole = kept.get(name)
    if only and whole and not whole["filter"] and whole["versions"] == versions:
        kept[name] = replaced(whole, ran, date)
    else:
        kept[name] = {"date": date, "filter": only, "versions": versions, "parts": results(ran)}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def selftest():
    whole = {"date": "2000-01-01", "filter": "", "versions": {"compiler": "14.2.0"}, "parts": {"core": {"passed": 2, "failed": []}}}
    failed = whole | {"parts": {"core": {"passed": 1, "failed": ["core"]}}}
    nothing = whole | {"parts": {}}
    ticks = ["✓" in row("debian-13", run) for run in (whole, failed, nothing, whole | {"filter": "core"})]
    again = replaced(failed, {("core", "core"): True}, "2000-01-02")
    worse = replaced(whole, {("core", "core"): False}, "2000-01-02")
    if again["parts"] != {"core": {"passed": 2, "failed": []}} or "✓" not in row("debian-13", again) or "2000-01-02" not in row("debian-13", again):
        sys.exit(f"what passes again: {again}")
    if worse["parts"] != {"core": {"passed": 1, "failed": ["core"]}}:
        sys.exit(f"what fails the second time: {worse}")
    changed = page_with(f"{BEGIN}\nold\n{END}", {"debian-13": whole})
    if ticks != [True, False, False, False] or "`core`" not in row("debian-13", failed) or "old" in changed:
        sys.exit(f"ticks {ticks}\n{changed}")


def main():
    if sys.argv[1:] == ["--facts"]:
        print(json.dumps(facts(), indent=1))
        return
    if sys.argv[1:] == ["--selftest"]:
        selftest()
        return
    if sys.argv[1:2] == ["--record"]:
        record(*sys.argv[2:])
    old = PAGE.read_text()
    new = page_with(old, read())
    if sys.argv[1:]:
        PAGE.write_text(new)
    elif old != new:
        print(*difflib.unified_diff(old.splitlines(), new.splitlines(), "the page", "platforms.json", lineterm=""), sep="\n")
        sys.exit("docs/compatibility.md has not what docs/platforms.json says; tests/platforms/table.py --write writes it anew")


if __name__ == "__main__":
    main()
