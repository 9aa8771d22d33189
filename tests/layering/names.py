#!/usr/bin/env python3
"""Whether each file includes, itself or by its headers, the header of ours that declares what it uses.

names.py TREE        a build with --unity compiles many files as one, where a file may use what another one includes; exit 1
                     and a line for each type and function that is used without its header
names.py --selftest  a type, a function and a qualified function without their header have to be noticed

By the text alone, in seconds: it knows types with a capital letter and functions of a namespace, where one header of ours
declares that name. What it cannot tell (macros, members, headers of others) only a compiler does: tests/style/alone.py.
"""
import collections
import pathlib
import re
import sys
import tempfile

PARTS = ("core", "backends", "cli", "tests", "bench", "examples")
ALONE = "bench"  # is compiled file by file, always
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
TYPE = re.compile(r"\b(?:class|struct|enum(?: class)?)\s+(?:[A-Z_]+_EXPORT\s+|\[\[[^\]]*\]\]\s*)*([A-Z]\w+)\s*(?:final\s*)?[:{]")
FUNCTION = re.compile(r"^(?!using|return|template|#|\s)[\w:<>,&*\[\] ]*?[\w>&*\]] ?[&*]?([a-z]\w+)\(", re.M)
NAMESPACE = re.compile(r"^namespace ([\w:]+)", re.M)


class Tree:
    def __init__(self, root):
        self.root = root
        self.text = {f.resolve(): f.read_text() for part in PARTS for f in sorted((root / part).rglob("*"))
                     if f.suffix in (".hpp", ".cpp")}
        self.code = {f: NOT_CODE.sub('""', text) for f, text in self.text.items()}
        # Which target has which include path is not known here: a name that is not beside the file means each
        # header whose path ends in it.
        self.ends = collections.defaultdict(set)
        for file in self.text:
            parts = file.relative_to(root).parts
            for n in range(len(parts)):
                self.ends["/".join(parts[n:])].add(file)
        self.reached = {}

    def with_headers(self, file):
        """The file and all of ours that it includes."""
        if file not in self.reached:
            self.reached[file] = {file}  # for a file that includes itself
            found = {file}
            for name in INCLUDE.findall(self.text[file]):
                beside = (file.parent / name).resolve()
                for header in [beside] if beside in self.text else self.ends.get(name.replace("../", ""), ()):
                    found |= self.with_headers(header)
            self.reached[file] = found
        return self.reached[file]

    def missing(self):
        """(file, name, header) for each name that is used without its header."""
        declared = collections.defaultdict(set)
        for file, code in self.code.items():
            for name in TYPE.findall(code) + FUNCTION.findall(code):
                declared[name].add(file)
        ours = "|".join({part for code in self.code.values() for n in NAMESPACE.findall(code) for part in n.split("::")})
        foreign = re.compile(rf"\b(?!(?:{ours})::)\w+::(?:\w+::)*\w+" if ours else r"\w+::\w+")
        qualified = re.compile(rf"\b(?:{ours})::([a-z]\w+)\(")
        for file, code in self.code.items():
            if self.root / ALONE in file.parents:
                continue
            code = foreign.sub(" ", code)
            used = set(re.findall(r"(?<![\w.])(?<!->)([A-Z]\w+)\b", code))
            used.update(re.findall(r"(?<![\w.])(?<!->)(?<!::)([a-z]\w+)\(", code), qualified.findall(code))
            reached = self.with_headers(file)
            for name in sorted(used):
                headers = [f for f in declared.get(name, ()) if f.suffix == ".hpp"]
                if len(headers) != 1 or declared[name] & reached:
                    continue
                # Declared in some other way: forward, as a member, a variable, a parameter of a template.
                otherwise = re.compile(rf"(?:[\w>\]&*]|\.\.\.)[ &*]+{name}\b")
                if not any(otherwise.search(self.code[f]) for f in reached):
                    yield file.relative_to(self.root), name, headers[0].relative_to(self.root)


def selftest():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name).resolve()
        files = {"core/a.hpp": "namespace holdfast {\nstruct Apple {};\nint count_of(const Apple& a);\n}\n",
                 "core/b.hpp": '#include "a.hpp"\n',
                 "core/good.cpp": '#include "b.hpp"\nint n(Apple a) { return holdfast::count_of(a); }\n',
                 "core/type.cpp": "int n() { return sizeof(Apple); }\n",
                 "cli/function.cpp": "int n = count_of(0);\n",
                 "cli/qualified.cpp": "int n = holdfast::count_of(0);\n",
                 "cli/foreign.cpp": "int n = std::count_of(0);  // Apple\n",
                 "cli/forward.cpp": "class Apple;\nint n(Apple*);\n"}
        for path, text in files.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        found = sorted(str(file) for file, _, _ in Tree(root).missing())
        expected = ["cli/function.cpp", "cli/qualified.cpp", "core/type.cpp"]
        if found != expected:
            sys.exit(f"noticed {found} instead of {expected}")


def main():
    if sys.argv[1:] == ["--selftest"]:
        selftest()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tree = Tree(pathlib.Path(sys.argv[1]).resolve())
    lines = [f"{file} uses {name} without {header}" for file, name, header in tree.missing()]
    print("\n".join(lines + [f"{len(tree.text)} files, {len(lines)} names without their header"]))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
