#!/usr/bin/env python3
"""links.py PAGE...: every relative link leads to a file, and to a heading where it names one."""
import pathlib
import re
import sys


def anchors(page):
    """The anchors that a Markdown page offers, spelled as web front ends spell them."""
    names = set()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            name = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            names.add(name)
    return names


def main():
    wrong, seen = [], 0
    for page in map(pathlib.Path, sys.argv[1:]):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            seen += 1
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            if not file.exists():
                wrong.append(f"{page}: {target}: there is no such file")
            elif anchor and anchor not in anchors(file):
                wrong.append(f"{page}: {target}: there is no such heading")
    print(*wrong, f"{seen} links, {len(wrong)} broken", sep="\n")
    sys.exit(1 if wrong or not seen else 0)


if __name__ == "__main__":
    main()
