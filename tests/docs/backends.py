#!/usr/bin/env python3
"""backends.py ROOT [--selftest C++]: every backend of the tree is in each place that names backends one by one.

Those places are in the list below, and in docs/extending.md for whoever writes a backend. --selftest adds a backend
to a copy of the tree and nothing else: each place must be missed, and whatever is derived must know it.
"""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Who has to be there: each backend; each but memory, which has no server and no file; each that connects to hosts.
ALL, STORED, HOSTS = "all", "stored", "hosts"
# (file, what it has of the backend, who). Case does not count.
PLACES = [
    ("CMakeLists.txt", r"add_subdirectory\({folder}\)", ALL),
    ("docs/backends.md", r"^\| \[?`{name}.*`Holdfast::{name}`.*^\| {name} \|", ALL),
    ("docs/compatibility.md", r"^\| {name} \|", ALL),
    ("docs/developing/faults.md", r"^\| fault [^\n]*\| {name} \|", STORED),
    ("docs/guarantees.md", r"^\| ([A-D]|in-process) \|[^\n]*\b{name}\b", ALL),
    ("docs/operations.md", r"\b{name}\b", STORED),
    ("docs/runbooks.md", r"^## {name}$", STORED),
    ("docs/security.md", r"^\| [^|]*`{name}s?://", HOSTS),
]
# Of the backend's own folders: its product's, and its tests'.
OWN = [
    ("{folder}/README.md", r"<!-- (requests|acquire) -->", STORED),
    ("{folder}/backend.json", r'"package":.*"mark":.*"light":.*"dark":.*"choices":', ALL),
    ("tests/backends/{name}/CMakeLists.txt", "", STORED),
    ("tests/backends/{name}/ground.cpp", r'AddGround \w+{{\s*"{name}",', ALL),
    ("tests/backends/{name}/deployment.cpp", r'Add \w+{{"{name}",', HOSTS),
]


def backends_of(root):
    """{name: its folder} of each in the tree, and the names of those that connect to hosts."""
    folders, hosts = {}, set()
    for file in (root / "backends").rglob("CMakeLists.txt"):
        for name in re.findall(r"holdfast_backend\((\w+)", file.read_text(encoding="utf-8")):
            folders[name] = file.parent.relative_to(root).as_posix()
            texts = "".join(p.read_text(encoding="utf-8") for p in sorted(file.parent.glob("*.cpp")))
            # A Descriptor has one host unless it says otherwise.
            if "Hosts::none" not in texts:
                hosts.add(name)
    return folders, hosts


def missing(root):
    """[(place, backend)]: the backend is not where it has to be."""
    folders, hosts = backends_of(root)
    wrong = []
    for name, folder in sorted(folders.items()):
        for place, pattern, who in PLACES + OWN:
            if who == STORED and name == "memory" or who == HOSTS and name not in hosts:
                continue
            file = root / place.format(name=name, folder=folder)
            text = file.read_text(encoding="utf-8") if file.is_file() else None
            wanted = pattern.format(name=name, folder=folder)
            if text is None or not re.search(wanted, text, re.IGNORECASE | re.MULTILINE | re.DOTALL):
                wrong.append((place, name))
    return wrong


def complaints(root):
    folders, _ = backends_of(root)
    wrong = [f"{place.format(name=name, folder=folders[name])}: {name} is not there, or lacks what it has to have"
             for place, name in missing(root)]
    guide = (root / "docs/extending.md").read_text(encoding="utf-8")
    for place, _, _ in PLACES + OWN:
        words = place.format(name="<name>", folder="backends/<name>")
        if f"`{words}`" not in guide:
            wrong.append(f"docs/extending.md does not say that a backend has to be in {words}")
    kinds = re.findall(r'\{"([a-z0-9-]+)", "', (root / "tests/lab/cli/server_kinds.cpp").read_text(encoding="utf-8"))
    page = (root / "tests/lab/README.md").read_text(encoding="utf-8")
    wrong += [f"tests/lab/README.md: no line shows how to start {k}" for k in kinds
              if not re.search(rf"^tests/lab/up {k} ", page, re.MULTILINE)]
    return wrong if kinds else wrong + ["tests/lab: no kind of server was found"]


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def add_pigeon(root):
    """A backend with a server and a client library, as step one of docs/extending.md leaves it."""
    folder = root / "backends/pigeon"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        'holdfast_backend_option(pigeon ON "pigeons" "libpigeon-dev" build)\nholdfast_backend(pigeon pigeon.cpp)\n')
    (folder / "pigeon.cpp").write_text('#include <pigeon/client.h>\nd.schemes = {"pigeon"};\n')
    (root / "core/src/pigeon.cpp").write_text("#include <pigeon/client.h>\n")
    top = root / "CMakeLists.txt"
    top.write_text(top.read_text().replace("add_subdirectory(backends/all)",
                                           "add_subdirectory(backends/pigeon)\nadd_subdirectory(backends/all)"))


def output(*command):
    return subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False).stdout


def by_scripts(root):
    """{what: whether it is so} of the other checks of the tree."""
    python = sys.executable
    layering = output(python, root / "tests/layering/check.py", root)
    figures = module(root / "docs/report/figures.py")
    run = figures.Run(root / "docs/report/reference.json")
    before = figures.forgotten(run)
    run.report["rows"].append({"scenario": "C1", "backend": "pigeon", "variant": "default", "status": "ok"})
    return {
        "layering: core may not include its client library": "core/src/pigeon.cpp:1: only a backend" in layering,
        "layering: the backend itself may": "backends/pigeon" not in layering,
        "faults.md: its cells are missed": "pigeon: the cell is empty" in output(
            python, root / "tests/docs/faults.py", root),
        "set-up: its package is missed": "lacks libpigeon-dev" in output(
            python, root / "tests/docs/install.py", root),
        "package: it is missed": module(root / "tests/package/check.py").not_tried(root) == {"pigeon"},
        "figures: the run's own are there": before == [],
        "figures: one more in the run is missed": figures.forgotten(run) == ["pigeon"],
    }


def by_cmake(root, cxx):
    build = root / "build"
    configure = ["cmake", "-G", "Ninja", "-S", root, "-B", build, f"-DCMAKE_CXX_COMPILER={cxx}",
                 "-DHOLDFAST_BUILD_TESTS=ON", "-DHOLDFAST_BUILD_BENCH=ON"]
    first = output(*configure)
    (root / "tests/backends/pigeon").mkdir()
    (root / "tests/backends/pigeon/CMakeLists.txt").touch()
    (root / "tests/backends/pigeon/ground.cpp").touch()
    second = output(*configure)
    if "Generating done" not in second:
        sys.exit(second)
    tests = json.loads(output("ctest", "--test-dir", build, "--show-only=json-v1"))["tests"]
    names = {test["name"] for test in tests}
    # The step alone: its target would first build whatever else the bench needs.
    folders = re.search(r" -DBACKENDS=(\S+) ", (build / "build.ninja").read_text())[1]
    sizes = build / "sizes.hpp"
    output("cmake", f"-DBACKENDS={folders}", f"-DOUTPUT={sizes}", "-P", root / "bench/count_lines.cmake")
    return {
        "CMake: a folder of tests is missed": "The pigeon backend has no tests of its own" in first,
        "CTest: its suites": {"conformance.pigeon", "races.pigeon", "long.pigeon"} <= names,
        "CTest: its column in cases.md": any("pigeon" in test["command"] for test in tests
                                             if test["name"] == "case-table"),
        "core: its scheme": '"pigeon"' in (build / "core/generated/known_schemes.inc").read_text(),
        "bench: its size": all(f'{{"{name}", ' in sizes.read_text() for name in backends_of(root)[0]),
    }


def selftest(root, cxx):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "tree"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("build", ".git", "node_modules", ".cache"))
        add_pigeon(copy)
        lacking = set(missing(copy))
        results = {f"{place}: it is missed": (place, "pigeon") in lacking for place, _, _ in PLACES + OWN
                   if place != "CMakeLists.txt"}  # where it was added
        results["nobody else is missed"] = {name for _, name in lacking} == {"pigeon"}
        guide = copy / "docs/extending.md"
        guide.write_text(guide.read_text().replace("`docs/runbooks.md`", ""))
        page = copy / "tests/lab/README.md"
        page.write_text(page.read_text().replace("tests/lab/up postgresql ", ""))
        words = "\n".join(complaints(copy))
        results["extending.md: a place is missed"] = "has to be in docs/runbooks.md" in words
        results["lab: a kind of server is missed"] = "how to start postgresql" in words
        results.update(by_scripts(copy))
        results.update(by_cmake(copy, cxx))
    for what, good in results.items():
        print(f"{'ok' if good else 'NOT SO'}: {what}")
    return [what for what, good in results.items() if not good]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    wrong = selftest(root, sys.argv[3]) if "--selftest" in sys.argv else complaints(root)
    print(*wrong, f"{len(wrong)} complaints", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
