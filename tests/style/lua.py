#!/usr/bin/env python3
"""Whether the Lua in the tree is right as far as its text shows: `luac -p` of Lua 5.1, Redis' own, takes each section,
and nothing but lua's and redis' own names, and what the sections of one backend define for each other, is global.

lua.py LUAC TREE        every mistake on a line of its own, exit 1 when there is one
lua.py LUAC --selftest  a section of each kind of mistake has to be noticed
"""
import pathlib
import re
import subprocess
import sys

from sections import sections

OF_LUA = {"redis", "KEYS", "ARGV", "math", "string", "ipairs", "pairs", "tonumber", "type", "pcall", "unpack", "error"}
LOCALS = re.compile(r"^local (?:function (\w+)|([\w, ]+))", re.M)


def mistakes(luac, files):
    """Of the files of one backend, {path: text}."""
    shared = {name.strip() for text in files.values() for one, some in LOCALS.findall(text)
              for name in (one or some).split(",")}
    for path, text in files.items():
        found = list(sections(text))
        if not found:
            yield f"{path}: no line `-- name: NAME`"
        for name, above, lua in found:
            done = subprocess.run([luac, "-p", "-l", "-"], input=lua, capture_output=True, text=True)
            if done.returncode != 0:
                yield f"{path}: {name}, {above} lines above: {done.stderr.strip()}"
            for line, way, what in re.findall(r"\[(\d+)\]\s+(GETGLOBAL|SETGLOBAL)\s.*; (\w+)", done.stdout):
                if what not in OF_LUA | shared or (way == "SETGLOBAL" and what not in shared):
                    yield f"{path}:{above + int(line)}: {name}: {what} is nowhere defined"


def main():
    luac, where = sys.argv[1:]
    if where == "--selftest":
        for bad in ("if x then", "return nobody_knows(1)", "unknown = 1"):
            if not list(mistakes(luac, {"x.lua": "-- name: x\nlocal x = 1\n" + bad + "\n"})):
                sys.exit(f"not noticed: {bad}")
        return
    folders = {}
    for path in sorted(pathlib.Path(where, "backends").rglob("*.lua")):
        folders.setdefault(path.parent, {})[path.relative_to(where).as_posix()] = path.read_text(encoding="utf-8")
    if not folders:
        sys.exit("there is no Lua here")
    wrong = [m for files in folders.values() for m in mistakes(luac, files)]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


main()
