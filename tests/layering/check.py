#!/usr/bin/env python3
"""Which part may include which, and what must not be in the tree.

check.py TREE       every mistake on a line of its own, exit 1 when there is one
check.py --selftest each rule is broken once in a temporary tree, and has to be noticed
"""
import os
import pathlib
import re
import sys
import tempfile

SOURCES = {".cpp", ".hpp", ".c", ".h"}
SCRIPTS = {".py", ".lua", ".sql", ".sh", ".cmake", ".txt", ".md", ".json", ".toml", ".in", ".mjs", ".js", ".html",
           ".yml", ""}
SKIPPED = {"build", "node_modules", ".git", ".cache", "__pycache__"}

# What every part may include from outside: the system's headers and these libraries. Whatever else there
# is belongs to a client library, and each client library to the one backend that includes it.
SYSTEM = re.compile(r"((arpa|linux|net|netinet|sys)/.+|(dirent|elf|errno|fcntl|limits|link|netdb|poll|pthread|pwd|sched"
                    r"|signal|spawn|stddef|stdint|stdlib|string|termios|time|unistd)\.h|known_schemes\.inc"
                    r"|(redis|redlock)_lua\.hpp|(mysql|postgresql|sqlite)_sql\.hpp)")
LIBRARIES = ("boost/", "fmt/", "CLI/", "toml++/")
NOT_FOR_ALL = "boost/asio/ssl"  # brings OpenSSL
# What a family of backends has alike: for these alone, and it knows none of them.
FAMILIES = {"backends/sql/common": ("backends/sql/mysql", "backends/sql/postgresql", "backends/sql/sqlite"),
            "backends/resp": ("backends/redis", "backends/redlock"),
            "backends/tls": ("backends/etcd", "backends/redis", "backends/redlock", "backends/resp", "backends/sql/mysql")}
# The client libraries of a family: its members may include them, too.
FAMILY_LIBRARIES = {"boost/asio/ssl": "backends/tls", "openssl": "backends/tls", "hiredis": "backends/resp"}
# Who may talk to a client library beside its backend: witnesses, floors and users' own programs do so on purpose.
WITNESSES = ("tests/", "bench/", "examples/")
# What backends with a network have in common is no part of what users include.
NET_USERS = ("core/src/", "core/include/holdfast/spi/", "backends/", "tests/")
CORE_PRIVATE_USERS = ("core/", "tests/core/", "tests/fuzz/")
# What stands in core's folder and is no part of the library: the C interface over it, the JSON that this and the command
# write, and the Python module over the C library.
BESIDE_CORE = ("core/c", "core/json", "core/python")
# Of core's own headers the C library may use what is whole in a header: a shared libholdfast shows nothing of the others.
FOR_C = ("core/src/cancellable.hpp",)


def part_of(path):
    """The folder that is one part of the house: core, backends/redis, cli, tests/lab, bench, ..."""
    words = path.split("/")
    if path.startswith("bench/checker/"):  # of histories; what tests record and judge, too
        return "bench/checker"
    if "/".join(words[:2]) in BESIDE_CORE:
        return "/".join(words[:2])
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
    for base in (folder.parent, tree / "core/include", tree / "core/src", tree / "core/json", tree / "core/c/include",
                 tree / "tests/lab/include", tree / "tests/support", tree / "tests/deployments",
                 tree / "tests/conformance", tree / "bench",
                 tree / "/".join(path.split("/")[:1])):
        if (base / name).is_file():
            return (base / name).resolve().relative_to(tree.resolve()).as_posix()
    return None


def client_library(name):
    """The client library that a header from outside the tree belongs to, or None."""
    if name.startswith(NOT_FOR_ALL):
        return NOT_FOR_ALL
    if "/" not in name and "." not in name or SYSTEM.fullmatch(name) or name.startswith(LIBRARIES):
        return None
    return re.split(r"[/.]", name)[0]


def owners(tree):
    """The backends that include each client library."""
    found = {}
    for file in (tree / "backends").rglob("*"):
        path = file.relative_to(tree).as_posix()
        if file.suffix in SOURCES:
            for _, name in includes(file.read_text(encoding="utf-8")):
                if resolve(tree, path, name) is None and client_library(name):
                    found.setdefault(client_library(name), set()).add(part_of(path))
    return found


def check_include(tree, path, name, owned):
    """The mistake in one include, or None."""
    mine = part_of(path)
    target = resolve(tree, path, name)
    if target is None:
        library = client_library(name) or (name if name in owned else None)
        if library is None or path.startswith(WITNESSES):
            return None
        family = FAMILY_LIBRARIES.get(library)
        if family is not None and (mine == family or mine in FAMILIES[family]):
            return None
        if not mine.startswith("backends/") or mine in FAMILIES:
            return f"only a backend may include the client library {name}"
        if len(owned[library]) > 1:
            return f"{name} belongs to one backend, and is included by {', '.join(sorted(owned[library]))}"
        return None
    if target.startswith("core/include/holdfast/spi/net/") and not path.startswith(NET_USERS):
        return f"{target} is for backends; nobody else may include it"
    theirs = part_of(target)
    if path.endswith((".c", ".h")) and target.endswith(".hpp"):
        return f"{target} is C++; C has holdfast.h only"
    if theirs == mine:
        return None
    if theirs == "core/c":
        if mine in ("tests/c", "tests/package", "examples") and target == "core/c/include/holdfast.h":
            return None
        return f"{mine} includes {target}: only programs in C use the C interface"
    if theirs == "core/json":
        return None if mine in ("cli", "core/c") else f"{mine} includes {target}: for the command and the C interface"
    if mine in BESIDE_CORE and target.startswith("core/src/"):
        return None if mine == "core/c" and target in FOR_C else f"{target} is core's own, also for {mine}"
    if mine == "examples" and (theirs != "core" or target.startswith(("core/include/holdfast/spi/", "core/include/holdfast/detail/"))):
        return f"an example includes {target}: a user's program has the installed interface only"
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
        if mine in FAMILIES.get(theirs, ()):
            return None
        if mine == "tests/backends" or mine == "tests/fuzz":
            return None
        return f"{target} belongs to a backend; nobody else may include it"
    if theirs == "tests/lab" or theirs == "tests/support":
        if mine.startswith("tests/") or (mine == "bench" and theirs == "tests/lab"):
            return None
        return f"{mine} includes {target}"
    if theirs == "tests/deployments" and mine in ("tests/backends", "tests/soak", "bench"):
        return None
    if theirs == "tests/conformance" and mine in ("tests/backends", "tests/example-backend"):
        return None  # what a backend adds to the suite stands beside its other tests
    if mine == "tests/oracle" and (theirs == "tests/sim" or target.endswith("/facts.hpp")):
        return None  # it plays on the simulation's servers, and reads what backends declare
    if theirs == "tests/models" and mine in ("tests/backends", "tests/sim"):
        return None  # the small server that runs shipped scripts serves both
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
    (re.compile(r"stays_true\(\s*\[[^]]*\]\s*(\(\))?\s*\{\s*return tr" + r"ue;"),
     ("tests/", "bench/"), SOURCES, "waits for a time instead of a condition"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"), ("",), SOURCES | SCRIPTS,
     "is unfinished"),
    (re.compile(r"(?<![\w.$}])/(work|root|home/[a-z]+)/"), ("",), SOURCES | SCRIPTS,
     "names a folder of one machine"),
    (re.compile(r"\bstd::(thread|jthread|async)\s*[({]|\bstd::jthread\b|\bpthread_create\b"),
     ("core/", "backends/"), SOURCES, "starts a thread that takes signals"),
    (re.compile(r"\bjson::serialize\("), ("cli/", "core/"), SOURCES, "writes JSON that a terminal may obey: json_text"),
]
# A handler runs on a thread of its own, where a test's REQUIRE ends the whole suite.
HANDLER = re.compile(r"\basync_\w+\([^;]*?\[[^]]*\]\s*\([^)]*\)[^{};]*\{")


def requires_in_handlers(text):
    """The numbers of the lines where a handler of an asynchronous call begins that has a REQUIRE."""
    for found in HANDLER.finditer(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if re.search(r"\bREQUIRE", text[found.end():end]):
            yield text.count("\n", 0, found.start()) + 1


# A fork() may find it half made by another thread: its child would wait for that thread for ever.
LAZY_STATIC = re.compile(r"^\s+static (?!constexpr|constinit|thread_local|inline|_)[^(]*?(\w+)( =|\{|;)")
FUNCTION_HEAD = re.compile(r"^\w[^;=]*?((?:\w+::)*\w+)\(.*\{$")


def lazy_statics(text):
    """The numbers of the lines with a static of a function that is neither constant nor made at load."""
    lines = text.splitlines()
    head = None
    for number, line in enumerate(lines, 1):
        function = FUNCTION_HEAD.match(line)
        if function:
            head = function.group(1)
        elif line.startswith("}"):
            head = None
        elif LAZY_STATIC.match(line) and (head or line.startswith(" " * 8)):  # there it is in a function of a class
            at_load = r"^\[\[maybe_unused\]\] const auto& \w+_at_load = " + re.escape(head or "none") + r"\("
            if not re.search(at_load, text, re.M):
                yield number


# A project of its own, which only a build by clang reads.
FUZZ_PROJECT = "tests/fuzz/CMakeLists.txt"


def absent_sources(tree, text):
    """The sources that the fuzz targets name and that are not there, each with the number of its line."""
    folders = {"tree": tree.resolve().as_posix()}
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"\$\{(\w+)\}", lambda v: folders.get(v.group(1), v.group(0)), line.split("#")[0])
        assigned = re.match(r"set\((\w+) (\S+)\)", line)
        if assigned:
            folders[assigned.group(1)] = assigned.group(2)
        for name in re.findall(r"[^\s()]+\.cpp\b", line):
            if "$" not in name and "*" not in name and not (tree / "tests/fuzz" / name).is_file():
                yield number, name


# The one place that starts threads.
STARTS_THREADS = "core/include/holdfast/spi/signal_masked_thread.hpp"
# The one place that writes JSON for people's terminals.
WRITES_JSON = "core/json/json_text.hpp"
# Where time itself is the subject, with the reason.
SLEEPS_ALLOWED = {
    "tests/lab/src/wait_until.cpp": "the one loop that looks again until a condition holds",
    "tests/lab/selftest.cpp": "that loop itself is tried, and processes that only have to be there",
    "tests/soak/director.cpp": "a fault that lasts is what is made",
    "bench/processes/believer.cpp": "it stays until it is killed",
    "bench/scenarios/c31_ttl.cpp": "the length of a pause is what is measured",
    "bench/scenarios/c5a_idle_waiters.cpp": "a fixed polling period is what is measured",
    "bench/processes/tasks.cpp": "a task takes its time, and a list of them is looked at again",
    "bench/processes/worker.cpp": "a polling loop is the variant under test",
}


def files(tree):
    """Of the tree alone: what tests make and remove in build/ beside this one is not looked at."""
    for top, folders, names in os.walk(tree):
        folders[:] = [f for f in folders if f not in SKIPPED]
        yield from (pathlib.Path(top) / name for name in names)


PUBLIC_HEADER = re.compile(r"core/include/holdfast/\w+\.hpp")
NAMES_SPI = re.compile(r"\bspi\b")
IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.M)


def foreign_imports(text):
    """What a module of the Python package imports that is neither Python's nor its own (that starts with a dot)."""
    return [name for name in IMPORT.findall(text) if name not in sys.stdlib_module_names | {"holdfast"}]


def check(tree):
    mistakes, owned = [], owners(tree)
    for file in sorted(files(tree)):
        path = file.relative_to(tree).as_posix()
        if file.is_symlink():
            continue
        if file.suffix not in SOURCES | SCRIPTS:
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if file.suffix in SOURCES:
            for number, name in includes(text):
                mistake = check_include(tree, path, name, owned)
                if mistake:
                    mistakes.append(f"{path}:{number}: {mistake}")
        if path.startswith("core/python/holdfast/") and file.suffix == ".py":
            mistakes += [f"{path}: imports {name}: the module needs Python and the C library alone"
                         for name in foreign_imports(text)]
        if PUBLIC_HEADER.fullmatch(path):
            mistakes += [f"{path}:{number}: a user's header names what only backends and decorators know: {line.strip()}"
                         for number, line in enumerate(text.splitlines(), 1) if NAMES_SPI.search(line)]
        if path == FUZZ_PROJECT:
            mistakes += [f"{path}:{number}: there is no {name}" for number, name in absent_sources(tree, text)]
        for pattern, folders, suffixes, meaning in WORDS:
            if file.suffix not in suffixes or not path.startswith(folders):
                continue
            if path in SLEEPS_ALLOWED and "waits" in meaning:
                continue
            if (path == STARTS_THREADS and "thread" in meaning) or (path == WRITES_JSON and "JSON" in meaning):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    mistakes.append(f"{path}:{number}: {meaning}: {line.strip()}")
        if path.startswith("tests/") and file.suffix in SOURCES:
            mistakes += [f"{path}:{number}: REQUIRE in a handler ends the suite: record there, and check outside"
                         for number in requires_in_handlers(text)]
        if path.startswith(("core/", "backends/")) and file.suffix in SOURCES:
            mistakes += [f"{path}:{number}: a child of fork() may wait for ever for this static: constinit, a member, or "
                         f"made at load" for number in lazy_statics(text)]
    return mistakes


BAD = {
    "core/include/holdfast/a.hpp": '#include <hiredis/hiredis.h>\n',
    "core/include/holdfast/by.hpp": "namespace spi {\nclass Registry;\n}\n",
    "core/include/holdfast/bz.hpp": '#include "holdfast/spi/registry.hpp"\n',
    "core/src/b.cpp": '#include "../../backends/redis/c.hpp"\n',
    "backends/sql/sqlite/d.cpp": '#include "../../redis/c.hpp"\n',
    "backends/redlock/p.cpp": '#include "../redis/c.hpp"\n',
    "backends/sql/sqlite/q.cpp": '#include "../../resp/r.hpp"\n',
    "backends/resp/av.cpp": '#include "../redis/c.hpp"\n',
    "backends/memory/aw.cpp": '#include <hiredis/hiredis.h>\n',
    "backends/redis/aa.cpp": '#include "../sql/common/ab.hpp"\n',
    "backends/sql/common/ac.hpp": '#include "../sqlite/ad.hpp"\n',
    "backends/sql/common/ae.hpp": "#include <sqlite3.h>\n",
    "backends/memory/ao.cpp": '#include "../tls/ap.hpp"\n',
    "backends/memory/aq.cpp": '#include <openssl/ssl.h>\n',
    "backends/tls/ar.hpp": '#include <dove/dove.h>\n',
    "backends/sql/sqlite/af.cpp": '#include "../postgresql/ag.hpp"\n',
    "backends/memory/e.cpp": '#include <sqlite3.h>\n',
    "backends/sql/sqlite/ah.cpp": '#include <sqlite3.h>\n',
    "core/src/ai.cpp": '#include <pigeon/client.h>\n',
    "core/src/aj.cpp": '#include <pigeon>\n',
    "core/src/ak.cpp": '#include <boost/asio/ssl/stream.hpp>\n',
    "cli/al.cpp": '#include <loft.h>\n',
    "backends/memory/f.cpp": '#include "secret.hpp"\n',
    "cli/g.cpp": '#include "../tests/lab/include/holdfast/lab/h.hpp"\n',
    "bench/i.cpp": '#include "../tests/conformance/j.hpp"\n',
    "bench/checker/s.cpp": '#include "../t.hpp"\n',
    "bench/checker/u.cpp": '#include "holdfast/lab/h.hpp"\n',
    "cli/v.cpp": '#include "checker/w.hpp"\n',
    "tests/core/x.cpp": '#include "t.hpp"\n',
    "tests/lab/src/k.cpp": '#include "holdfast/ok.hpp"\n',
    "tests/core/l.cpp": "void f() { std::this_thread::sleep_" + "for(1s); }\n",
    "tests/core/s.cpp": "void f() { stays_true([] { return tr" + "ue; }, 1s); }\n",
    "tests/core/au.cpp": "void f() { lock->async_acquire({}, [&](error_code ec, Lease) { if (x) { REQ" + "UIRE(!ec); } }); }\n",
    "core/src/m.cpp": "// TO" + "DO later\n",
    "backends/memory/z.cpp": "auto t = std::thread([] {});\n",
    "core/src/ba.hpp": "class A {\n    int f() {\n        static const Lease none;\n        return 1;\n    }\n};\n",
    "core/src/bb.cpp": "const A& a() {\n    static const A one = make(1);\n    return one;\n}\n",
    "core/src/bc.cpp": "const A& A::a() {\n    static const A one{make()};\n    return one;\n}\n"
                       "[[maybe_unused]] const auto& b_at_load = B::a();\n",
    FUZZ_PROJECT: "set(etcd ${tree}/backends/etcd)\nadd_executable(a ${etcd}/d.cpp)\n",
    "cli/av.cpp": "auto s = boost::json::serialize(o);\n",
    "cli/net.cpp": '#include "holdfast/spi/net/gate.hpp"\n',
    "core/include/holdfast/net.hpp": '#include "holdfast/spi/net/gate.hpp"\n',
    "tests/example-backend/ay.cpp": '#include "../../backends/redis/c.hpp"\n',
    "tests/example-backend/az.cpp": '#include "secret.hpp"\n',
    "examples/leader/as.cpp": '#include "../../bench/t.hpp"\n',
    "examples/leader/at.cpp": '#include <holdfast/spi/net/gate.hpp>\n',
    "examples/leader/detail.cpp": '#include <holdfast/detail/lock.hpp>\n',
    "core/src/bf.cpp": '#include "../json/bg.hpp"\n',
    "core/json/bh.cpp": '#include "secret.hpp"\n',
    "core/c/src/bi.cpp": '#include "secret.hpp"\n',
    "core/c/src/bj.cpp": '#include "../../../backends/redis/c.hpp"\n',
    "core/c/src/bk.cpp": "auto s = boost::json::serialize(o);\n",
    "backends/memory/bl.cpp": '#include "../../core/json/bg.hpp"\n',
    "cli/bm.cpp": '#include "../core/c/include/holdfast.h"\n',
    "tests/c/bn.c": '#include <holdfast/ok.hpp>\n',
    "tests/c/bo.cpp": '#include "../../core/c/src/bp.hpp"\n',
    "core/python/holdfast/bq.py": "import os\nimport redis\n",
    "docs/n.md": "look at /wo" + "rk/main\n",
}
GOOD = {
    "core/include/holdfast/ok.hpp": "#include <vector>\n",
    "core/include/holdfast/ca.hpp": '#include "holdfast/detail/lock.hpp"\n',
    "core/include/holdfast/detail/lock.hpp": "#include <mutex>\n",
    "core/include/holdfast/spi/cb.hpp": "namespace holdfast::spi {\n}\n",
    "core/include/holdfast/spi/net/gate.hpp": "#include <vector>\n",
    "backends/pigeon/am.cpp": '#include <pigeon/client.h>\n#include <loft.h>\n#include <sys/types.h>\n',
    "cli/an.cpp": '#include <CLI/App.hpp>\n#include <unistd.h>\n',
    "core/src/net/socket.cpp": '#include "holdfast/spi/net/gate.hpp"\n',
    "backends/memory/net.cpp": '#include "holdfast/spi/net/gate.hpp"\n',
    "core/src/secret.hpp": '#include "holdfast/ok.hpp"\n',
    "backends/redis/c.hpp": '#include <hiredis/hiredis.h>\n#include "holdfast/ok.hpp"\n',
    "backends/resp/r.hpp": '#include <hiredis/hiredis.h>\n#include "../tls/ap.hpp"\n',
    "backends/redlock/r.cpp": '#include "../resp/r.hpp"\n',
    "backends/tls/ap.hpp": '#include <openssl/ssl.h>\n#include <boost/asio/ssl/stream.hpp>\n',
    "backends/redis/as.cpp": '#include "../tls/ap.hpp"\n#include <openssl/evp.h>\n',
    "backends/sql/common/ab.hpp": '#include "holdfast/ok.hpp"\n',
    "backends/sql/sqlite/ad.hpp": '#include "../common/ab.hpp"\n',
    "backends/sql/postgresql/ag.hpp": '#include "../common/ab.hpp"\n#include <pqxx/pqxx>\n',
    WRITES_JSON: "return boost::json::serialize(o);\n",
    STARTS_THREADS: "return std::thread(f);\n",
    "core/src/bd.cpp": "const A& A::a() {\n    static const A one{make()};\n    return one;\n}\n"
                       "[[maybe_unused]] const auto& a_at_load = A::a();\n",
    "core/src/be.cpp": "const A& a() {\n    static constinit const A one;\n    return one;\n}\n"
                       "struct B {\n    static A f(int);\n    static B b;\n};\n",
    "core/src/z.hpp": "std::thread thread_;\n",
    "tests/core/o.cpp": '#include "secret.hpp"\n',
    "tests/example-backend/ax.cpp": '#include "holdfast/ok.hpp"\n#include "../conformance/j.hpp"\n',
    "tests/lab/include/holdfast/lab/h.hpp": "#include <string>\n",
    "tests/conformance/j.hpp": '#include "holdfast/lab/h.hpp"\n#include "holdfast/ok.hpp"\n',
    "examples/leader/au.cpp": '#include <holdfast/ok.hpp>\n#include <sqlite3.h>\n',
    "core/c/include/holdfast.h": "#include <stdint.h>\n",
    "core/c/src/bp.hpp": '#include "../include/holdfast.h"\n#include "holdfast/ok.hpp"\n',
    "core/c/src/br.cpp": '#include "bp.hpp"\n#include "../../src/cancellable.hpp"\n#include "bg.hpp"\n#include <sys/eventfd.h>\n',
    "core/src/cancellable.hpp": "#include <deque>\n",
    "core/json/bg.hpp": '#include <boost/json/object.hpp>\n#include "holdfast/ok.hpp"\n',
    "cli/bs.cpp": '#include "bg.hpp"\n',
    "tests/c/bt.c": '#include <holdfast.h>\n#include <stdio.h>\n',
    "core/python/holdfast/bu.py": "import os\nfrom . import _library\n",
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
