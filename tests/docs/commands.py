#!/usr/bin/env python3
"""commands.py HOLDFAST PAGE...: each `holdfast ...` line of a shell block uses options that exist."""
import pathlib
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def options(holdfast, *subcommand):
    """The options that --help shows, and the subcommands."""
    text = subprocess.run([holdfast, *subcommand, "--help"], text=True, capture_output=True,
                          check=True).stdout
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text)), text


def main():
    holdfast, pages = sys.argv[1], sys.argv[2:]
    general, general_text = options(holdfast)
    wrong, seen = [], 0
    for page in map(pathlib.Path, pages):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                found = re.match(r"\s*\$?\s*(?:\w+=\S+ )*holdfast (.*)", line)
                if not found:
                    continue
                seen += 1
                words = shlex.split(found.group(1), comments=True)
                if "--" in words:
                    words = words[:words.index("--")]
                given = [word.split("=")[0] for word in words if word.startswith("-")]
                names = [word for word in words if re.fullmatch(r"[a-z]+", word)]
                command = next((w for w in names if re.search(rf"^ +{w}\b", general_text,
                                                              re.MULTILINE)), None)
                known = set(general)
                if command:
                    known |= options(holdfast, command)[0]
                elif "--version" not in given and "--help" not in given:
                    wrong.append(f"{page}: no such command: {line.strip()}")
                wrong += [f"{page}: no option {option}: {line.strip()}"
                          for option in given if option not in known]
    print(*wrong, f"{seen} lines, {len(wrong)} wrong", sep="\n")
    sys.exit(1 if wrong or not seen else 0)


if __name__ == "__main__":
    main()
