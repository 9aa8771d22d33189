#!/usr/bin/env python3
"""Which part may include which, and what must not be in the tree.

check.py TREE       every mistake on a line of its own, exit 1 when there is one
check.py --selftest each rule is broken once in a temporary tree, and has to be noticed
"""
import pathlib
import re
import sys
import tempfile

SOURCES = {".cpp", ".hpp"}
SCRIPTS = {".py", ".sh", ".cmake", ".txt", ".md", ".json", ".toml", ".in", ".mjs", ".js", ".html",
           ".yml", ""}
SKIPPED = {"build", "node_modules", ".git", ".cache", "__pycache__"}

# The client libraries, by the folder that may include them.
CLIENTS = {
    "hiredis": "backends/redis", "sqlite3.h": "backends/sql/sqlite", "openssl": "backends/redis",
    "boost/asio/ssl": "backends/redis", "pqxx": "backends/sql/postgresql",
    "libpq-fe.h": "backends/sql/postgresql",
    "libpq-events.h": "backends/sql/postgresql", "zookeeper": "backends/zookeeper",
}
# One backend that builds on another, through one header that says so.
STATED = {("backends/redlock", "backends/redis"): "backends/redis/node.hpp"}
# Who may talk to a client library beside its backend: witnesses and floors do so on purpose.
WITNESSES = ("tests/", "bench/")
CORE_PRIVATE_USERS = ("core/", "tests/core/", "tests/fuzz/")


def part_of(path):
    """The folder that is one part of the house: core, backends/redis, cli, tests/lab, bench, ..."""
    words = path.split("/")
    if path.startswith("bench/checker/"):  # of histories; what tests record and judge, too
        return "bench/checker"
    if words[0] == "backends":
        return "/".join(words[:3]) if words[1] == "sql" else "/".join(words[:2])
    if words[0] == "tests" and len(words) > 2:
        return "/".join(words[:2])
    return words[0]


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2)


def resolve(tree, path, name):
    """Which file of the tree an include means, or None for one from outside."""
    folder = tree / path
    for base in (folder.parent, tree / "core/include", tree / "core/src",
                 tree / "tests/lab/include", tree / "tests/support", tree / "bench",
                 tree / "/".join(path.split("/")[:1])):
        if (base / name).is_file():
            return (base / name).resolve().relative_to(tree.resolve()).as_posix()
    return None


def check_include(tree, path, name):
    """The mistake in one include, or None."""
    mine = part_of(path)
    public = path.startswith("core/include/")
    for client, owner in CLIENTS.items():
        if name == client or name.startswith(client + "/") or name.startswith(client + "."):
            if public:
                return f"a public header includes the client library {name}"
            if path.startswith(WITNESSES) or mine == owner:
                return None
            return f"only {owner} may include {name}"
    target = resolve(tree, path, name)
    if target is None:
        return None
    theirs = part_of(target)
    if theirs == mine:
        return None
    if mine == "core":
        return f"core includes {target}: it may know no other part"
    if target.startswith("core/src/"):
        if path.startswith(CORE_PRIVATE_USERS):
            return None
        return f"{target} is core's own; only public headers are for others"
    if mine == "bench/checker" and theirs != "core":
        return f"the checker of histories includes {target}: it knows no other part but core"
    if mine == "tests/lab":
        return f"the lab includes {target}: it knows nothing of Holdfast"
    if theirs == "core":
        return None
    if theirs.startswith("backends/"):
        if STATED.get((mine, theirs)) == target:
            return None
        if mine == "tests/backends" or mine == "tests/fuzz":
            return None
        return f"{target} belongs to a backend; nobody else may include it"
    if theirs == "tests/lab" or theirs == "tests/support":
        if mine.startswith("tests/") or (mine == "bench" and theirs == "tests/lab"):
            return None
        return f"{mine} includes {target}"
    if theirs == "bench/checker" and (mine == "bench" or mine.startswith("tests/")):
        return None
    if theirs.startswith("tests/") or theirs in ("cli", "bench", "bench/checker"):
        if mine == "tests/" + theirs:  # tests/cli and tests/bench look inside what they test
            return None
        return f"{mine} includes {target}"
    return None


# Put together here so that this file does not find itself.
WORDS = [
    (re.compile(r"\b(sleep_" + r"for|sleep_" + r"until|u" + r"sleep|nano" + r"sleep)\b"),
     ("tests/", "bench/"), SOURCES, "waits for a time instead of a condition"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"), ("",), SOURCES | SCRIPTS,
     "is unfinished"),
    (re.compile(r"(?<![\w.$}])/(work|root|home/[a-z]+)/"), ("",), SOURCES | SCRIPTS,
     "names a folder of one machine"),
]
# Where time itself is the subject, with the reason.
SLEEPS_ALLOWED = {
    "tests/lab/src/wait_until.cpp": "the one loop that looks again until a condition holds",
    "bench/scenarios/c5a_idle_waiters.cpp": "a fixed polling period is what is measured",
    "bench/processes/worker.cpp": "a polling loop is the variant under test",
}


def check(tree):
    mistakes = []
    for file in sorted(tree.rglob("*")):
        path = file.relative_to(tree).as_posix()
        if SKIPPED & set(path.split("/")) or not file.is_file() or file.is_symlink():
            continue
        if file.suffix not in SOURCES | SCRIPTS:
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if file.suffix in SOURCES:
            for number, name in includes(text):
                mistake = check_include(tree, path, name)
                if mistake:
                    mistakes.append(f"{path}:{number}: {mistake}")
        for pattern, folders, suffixes, meaning in WORDS:
            if file.suffix not in suffixes or not path.startswith(folders):
                continue
            if path in SLEEPS_ALLOWED and "waits" in meaning:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    mistakes.append(f"{path}:{number}: {meaning}: {line.strip()}")
    return mistakes


BAD = {
    "core/include/holdfast/a.hpp": '#include <hiredis/hiredis.h>\n',
    "core/src/b.cpp": '#include "../../backends/redis/c.hpp"\n',
    "backends/sql/sqlite/d.cpp": '#include "../../redis/c.hpp"\n',
    "backends/redlock/p.cpp": '#include "../redis/c.hpp"\n',
    "backends/sql/sqlite/q.cpp": '#include "../../redis/node.hpp"\n',
    "backends/memory/e.cpp": '#include <sqlite3.h>\n',
    "backends/memory/f.cpp": '#include "secret.hpp"\n',
    "cli/g.cpp": '#include "../tests/lab/include/holdfast/lab/h.hpp"\n',
    "bench/i.cpp": '#include "../tests/conformance/j.hpp"\n',
    "bench/checker/s.cpp": '#include "../t.hpp"\n',
    "bench/checker/u.cpp": '#include "holdfast/lab/h.hpp"\n',
    "cli/v.cpp": '#include "checker/w.hpp"\n',
    "tests/core/x.cpp": '#include "t.hpp"\n',
    "tests/lab/src/k.cpp": '#include "holdfast/ok.hpp"\n',
    "tests/core/l.cpp": "void f() { std::this_thread::sleep_" + "for(1s); }\n",
    "core/src/m.cpp": "// TO" + "DO later\n",
    "docs/n.md": "look at /wo" + "rk/main\n",
}
GOOD = {
    "core/include/holdfast/ok.hpp": "#include <vector>\n",
    "core/src/secret.hpp": '#include "holdfast/ok.hpp"\n',
    "backends/redis/c.hpp": '#include <hiredis/hiredis.h>\n#include "holdfast/ok.hpp"\n',
    "backends/redis/node.hpp": '#include "c.hpp"\n',
    "backends/redlock/r.cpp": '#include "../redis/node.hpp"\n',
    "tests/core/o.cpp": '#include "secret.hpp"\n',
    "tests/lab/include/holdfast/lab/h.hpp": "#include <string>\n",
    "tests/conformance/j.hpp": '#include "holdfast/lab/h.hpp"\n#include "holdfast/ok.hpp"\n',
    "bench/t.hpp": '#include "checker/w.hpp"\n',
    "bench/checker/w.hpp": '#include "holdfast/ok.hpp"\n',
    "tests/conformance/y.cpp": '#include "checker/w.hpp"\n',
    "bench/p.cpp": '#include "holdfast/lab/h.hpp"\n#include <sqlite3.h>\n',
}


def selftest():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for path, text in {**GOOD, **BAD}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        found = {line.split(":")[0] for line in check(tree)}
    for path in BAD:
        if path not in found:
            sys.exit(f"not noticed: {path}: {BAD[path]}")
    for path in GOOD:
        if path in found:
            sys.exit(f"wrongly refused: {path}: {GOOD[path]}")
    print(f"{len(BAD)} mistakes noticed, {len(GOOD)} good files left alone")


def main():
    if sys.argv[1:] == ["--selftest"]:
        selftest()
        return
    mistakes = check(pathlib.Path(sys.argv[1]))
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
