#!/usr/bin/env python3
"""How large the product is, and what stands in it more than once. figures.py [TREE]

Lines are all lines of C++, Lua and SQL, comments and blank ones too.
"""
import importlib.util
import pathlib
import re
import sys
from collections import defaultdict

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
LONGEST_FILE, LONGEST_FUNCTION = 450, 60
SOURCES = {".cpp", ".hpp", ".lua", ".sql"}


def files(*folders):
    return sorted(f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in SOURCES)


def lines(file):
    return file.read_text(encoding="utf-8").splitlines()


def functions(file):
    """(length, first line) of each function whose body ends in the first column."""
    begin, text = 0, lines(file)
    for number, line in enumerate(text):
        if re.match(r"[A-Za-z].*\($|[A-Za-z].*\).*\{$|[A-Za-z].*\(.*,$", line) and not line.startswith(("namespace", "struct", "class")):
            begin = begin or number + 1
        elif line == "}" and begin:
            yield number + 2 - begin, text[begin - 1]
            begin = 0
        elif re.match(r"[A-Za-z].*;$|};$", line):
            begin = 0


def types(file):
    return re.findall(r"^(?:class|struct|enum class)(?: HOLDFAST_EXPORT| \[\[nodiscard\]\])? (\w+)(?: final)?(?: ?:[^;{:][^;{]*)? \{", file.read_text(encoding="utf-8"), re.M)


def places():
    spec = importlib.util.spec_from_file_location("backends", ROOT / "tests/docs/backends.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return len(loaded.PLACES)


def main():
    for what in (("core", "backends", "cli"), ("core",), ("backends",), ("cli",), ("tests",), ("bench",)):
        print(f"{sum(len(lines(f)) for f in files(*what)):6}  lines of {', '.join(what)}")
    spi = [name for f in files("core/include/holdfast/spi") if f.parent.name == "spi" for name in types(f) if name != "boost"]
    print(f"{len(spi):6}  types of the SPI: {', '.join(sorted(spi))}")
    print(f"{places():6}  places that a backend fills outside its own folders")
    product = files("core", "backends", "cli")
    long = [f for f in product if len(lines(f)) > LONGEST_FILE]
    print(f"{len(long):6}  files over {LONGEST_FILE} lines")
    for f in long:
        print(f"        {len(lines(f))} {f.relative_to(ROOT)}")
    found = [(length, f, head) for f in product if f.suffix == ".cpp" for length, head in functions(f) if length > LONGEST_FUNCTION]
    print(f"{len(found):6}  functions over {LONGEST_FUNCTION} lines")
    for length, f, head in found:
        print(f"        {length} {f.relative_to(ROOT)}: {head}")
    where = defaultdict(set)
    for f in files("backends"):
        for name in types(f):
            where[name].add(f.relative_to(ROOT / "backends").parts[0 if f.parts[-3] != "sql" else 1])
    twice = {name: of for name, of in where.items() if len(of) > 2 and not name.endswith("Options")}
    print(f"{len(twice):6}  names of types in three backends or more")
    for name, of in sorted(twice.items()):
        print(f"        {name}: {', '.join(sorted(of))}")


if __name__ == "__main__":
    main()
