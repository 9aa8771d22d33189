#!/usr/bin/env python3
"""The ABI of the C library: a program that was built with an earlier holdfast.h runs with today's library.

abi.py             compares holdfast.h with what is kept for the library's SONAME, core/c/SONAME.abi
abi.py --write     records what was added; a change that breaks such programs is refused
abi.py --selftest  holdfast.h is changed in each way once in a copy, and has to be judged rightly

What is kept is the header without comments, since it is what people can read and what any machine can compare:
abidiff gets two libraries in which each function and each enum of a header is a variable of its type. Holdfast is not compiled
for it: holdfast.h alone says what its functions take, and the compiler refuses a definition that differs.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import symbols

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "core/c/include/holdfast.h"
STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} \1;", re.S)


def soname():
    version = re.search(r"SOVERSION (\d+)", (ROOT / "core/c/CMakeLists.txt").read_text(encoding="utf-8"))[1]
    return f"libholdfast-c.so.{version}"


def bare(header):
    """Without comments and empty lines."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return "".join(line.rstrip() + "\n" for line in text.splitlines() if line.strip())


def without_new_fields(header, kept):
    """A struct begins with its size, so fields may be appended, except where another struct has it as a field."""
    before = {name: body.count(";") for name, body in STRUCT.findall(kept)}
    embedded = {word for _, body in STRUCT.findall(header) for word in re.findall(r"^ *(hf_\w+) \w", body, re.M)}

    def cut(match):
        name, body = match.groups()
        fields = body.split(";")[:-1]
        if name in embedded or name not in before or len(fields) <= before[name]:
            return match[0]
        return f"typedef struct {name} {{\n{';'.join(fields[:before[name]])};\n}} {name};"

    return STRUCT.sub(cut, header)


def library(header, path):
    """The enums get names, after their first enumerators: the type of a variable that others see needs one."""
    named = re.sub(r"^enum \{(\s*)(\w+)", r"enum kinds_\2 {\1\2", header, flags=re.M)
    variables = [f'decltype(&::{f}) type_of_{f} __asm__("{f}");' for f in symbols.functions(header)]
    variables += [f"decltype({first}) enum_of_{first};" for first in re.findall(r"^(?:typedef )?enum \w+ \{\s*(\w+)", named, re.M)]
    source = path.with_suffix(".cpp")
    source.write_text("\n".join([named, *variables, ""]), encoding="utf-8")
    subprocess.run(["c++", "-g", "-shared", "-fPIC", source, "-o", path], check=True)


def breaks(header, kept):
    """What abidiff says about programs that were built with `kept`; empty when they run with `header`."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = pathlib.Path(folder) / "kept.so", pathlib.Path(folder) / "today.so"
        library(kept, old)
        library(without_new_fields(header, kept), new)
        try:
            done = subprocess.run(["abidiff", "--no-added-syms", "--fail-no-debug-info", old, new],
                                  check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            sys.exit("abidiff is missing: apt-get install abigail-tools")
    return done.stdout if done.returncode else ""


# (what is changed in holdfast.h, by what, whether programs of before still run)
CHANGES = [
    ("int64_t max_hold;", "", False),
    ("int64_t max_hold;", "int32_t max_hold;", False),
    ("int64_t max_hold;", "int64_t max_hold;\n    int64_t other;", False),
    ("char text[1024];", "char text[512];", False),
    ("char message[1024];", "char message[1024];\n    int64_t other;", False),  # moves a field of hf_event
    ("HF_SEMAPHORE = 2", "HF_SEMAPHORE = 4", False),
    (", HF_ELECTION = 3", "", False),
    ("HF_LOST = 7,", "HF_LOST = 70,", False),
    ("HF_API int hf_queue_fd(const hf_queue*);", "", False),
    ("int hf_queue_fd(", "long hf_queue_fd(", False),
    ("hf_cancel(hf_queue*, uint64_t call)", "hf_cancel(hf_queue*, uint32_t call)", False),
    ("hf_cancel(hf_queue*, uint64_t call)", "hf_cancel(hf_queue*, uint64_t call, int now)", False),
    ("int64_t min_hold;", "int64_t min_hold;\n    int64_t other;", True),
    ("HF_ELECTION = 3", "HF_ELECTION = 3, HF_BARRIER = 4", True),
    ("HF_API void hf_close(hf_client*);", "HF_API void hf_close(hf_client*);\nHF_API int hf_other(hf_client*);", True),
]


def selftest(kept):
    for old, new, harmless in CHANGES:
        if old not in kept:
            yield f"holdfast.h has no '{old}' to be changed"
        elif bool(breaks(kept.replace(old, new, 1), kept)) == harmless:
            yield f"'{old}' -> '{new}' was taken for {'a break' if harmless else 'harmless'}"


def main():
    header, file = bare(HEADER.read_text(encoding="utf-8")), ROOT / "core/c" / f"{soname()}.abi"
    write = sys.argv[1:] == ["--write"]
    if not file.exists():
        if not write:
            sys.exit(f"{file.relative_to(ROOT)} is missing. A new SONAME gets it by: tests/c/abi.py --write")
        file.write_text(header, encoding="utf-8")
    kept = file.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--selftest"]:
        wrong = list(selftest(kept))
        print(*wrong, f"{len(CHANGES)} changes, {len(wrong)} judged wrongly", sep="\n")
        sys.exit(1 if wrong else 0)
    if found := breaks(header, kept):
        sys.exit(f"{found}\nPrograms that were built with {soname()} would not run with today's. Undo the change, or give the library "
                 "another SONAME: SOVERSION in core/c/CMakeLists.txt, and the name of its package in cmake/packages/debian.")
    if write:
        file.write_text(header, encoding="utf-8")
    elif header != kept:
        sys.exit(f"holdfast.h has what {file.relative_to(ROOT)} has not, and programs of before still run. Record it by: "
                 "tests/c/abi.py --write")
    print(f"{len(symbols.functions(kept))} functions as kept")


if __name__ == "__main__":
    main()
