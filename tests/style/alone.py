#!/usr/bin/env python3
"""Whether every file of the library and the command compiles by itself, as a build without --unity does.

alone.py BUILD      what BUILD (with --unity, and compile_commands.json) does not show: reads each .cpp that another one
                    comes before, and each private header that is no .cpp's first include; exit 1 when one lacks something
alone.py --selftest a source that lacks an include, and a header, have to be noticed
"""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

PARTS = ("core/src", "backends", "cli")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def commands(build):
    """Source -> its command without output, for each that is compiled, or included by one that is."""
    first, later = {}, {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        words = shlex.split(entry["command"])
        at = words.index("-o")
        del words[at:at + 2]
        words = [w for w in words if w != "-c" and pathlib.Path(entry["directory"], w).resolve() != source]
        if os.path.basename(words[0]).endswith("cache"):
            del words[0]
        if "Unity" not in source.parts:
            first[source] = words
            continue
        members = [pathlib.Path(name).resolve() for name in INCLUDE.findall(source.read_text())]
        first[members[0]] = words
        for member in members[1:]:
            later[member] = words
    return first, later


def headers_of_nobody(folders, sources):
    """Headers that no source includes first, each with the command of a source beside it."""
    beside = {}
    own = set()
    for source, words in sources.items():
        beside.setdefault(source.parent, words)
        names = INCLUDE.findall(source.read_text())
        if names:
            own.add((source.parent / names[0]).resolve())
    for folder in folders:
        for header in sorted(folder.rglob("*.hpp")):
            places = [p for p in header.parents if p in beside] or [p for p in beside if header.parent in p.parents]
            if header.resolve() not in own and places:
                yield header.resolve(), beside[places[0]]


def reads(source, words):
    """Empty, or what the compiler says."""
    what = [str(source)] if source.suffix == ".cpp" else ["-x", "c++", "-include", str(source), "/dev/null"]
    done = subprocess.run([*words, "-fsyntax-only", *what], text=True, capture_output=True)
    return "" if done.returncode == 0 else done.stderr


def check(tree, build):
    folders = [tree / part for part in PARTS if (tree / part).is_dir()]
    first, later = commands(build)

    def ours(files):
        return {f: w for f, w in files.items() if any(folder in f.parents for folder in folders)}

    jobs = ours(later)
    jobs.update(headers_of_nobody(folders, {**ours(first), **jobs}))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = dict(zip(jobs, pool.map(lambda job: reads(*job), jobs.items())))
    wrong = {f: text for f, text in said.items() if text}
    for file, text in sorted(wrong.items()):
        print(f"{file.relative_to(tree)} does not compile by itself:\n{text}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(jobs)} files read by themselves, {len(wrong)} of them lack something, "
          f"{used.ru_utime + used.ru_stime:.0f} s of CPU")
    return wrong, jobs


def selftest(compiler):
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name).resolve()
        files = {"cli/a.cpp": '#include "a.hpp"\n#include <vector>\nint a() { return 1; }\n',
                 "cli/a.hpp": "int a();\n",
                 "cli/b.cpp": "std::vector<int> b;\n",
                 "cli/c.cpp": '#include "b.hpp"\nint c;\n',
                 "cli/b.hpp": "#pragma once\n",
                 "cli/d.hpp": "inline std::vector<int> d;\n",
                 "cli/e.hpp": "#include <vector>\ninline std::vector<int> e;\n"}
        for path, text in files.items():
            (tree / path).parent.mkdir(exist_ok=True)
            (tree / path).write_text(text)
        build = tree / "build"
        unity = build / "Unity/unity_0_cxx.cxx"
        unity.parent.mkdir(parents=True)
        unity.write_text("".join(f'#include "{tree}/cli/{one}.cpp"\n' for one in "abc"))
        (build / "compile_commands.json").write_text(json.dumps([{
            "directory": str(build), "file": str(unity),
            "command": f"{compiler} -std=c++20 -o unity.o -c {unity}"}]))
        wrong, jobs = check(tree, build)
        for found, expected in ((jobs, ["b.cpp", "c.cpp", "d.hpp", "e.hpp"]), (wrong, ["b.cpp", "d.hpp"])):
            if sorted(f.name for f in found) != expected:
                sys.exit(f"{sorted(f.name for f in found)} instead of {expected}")


def main():
    if sys.argv[1:2] == ["--selftest"] and len(sys.argv) == 3:
        selftest(sys.argv[2])
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong, _ = check(pathlib.Path(__file__).resolve().parents[2], pathlib.Path(sys.argv[1]).resolve())
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
