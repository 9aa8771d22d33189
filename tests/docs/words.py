#!/usr/bin/env python3
"""Whether pages, help and public headers use the terms of docs/glossary.md, and none of the words that these replace,
whether the sources name what they speak of, and whether the code on the first pages is as narrow as a forge shows it.

words.py TREE             each use of a word from the glossary's last column is printed; exit 1 when there is one
words.py TREE --selftest  each of those words has to be found in a page that has it, and a line that is too wide
"""
import pathlib
import re
import sys

GLOSSARY = "docs/glossary.md"
# Everyday words, too, that say less than a term, and those that begin a riddle.
ALSO = {"whoever": "name it", "everybody": "all, any client", "those who": "those that", "nobody waits who": "no waiter"}
GLOBS = ("README.md", "docs/*.md", "docs/deploy/*.md", "examples/*.md", "examples/*/*.md", "backends/*/README.md",
         "backends/sql/*/README.md", "cli/holdfast.1",
         "core/include/holdfast/*.hpp", "core/include/holdfast/spi/*.hpp")

# Of what says "who" and names nobody, these have no other use.
NAMELESS = {"whoever": "name it", "whom": "name it"}
SOURCES = ("core", "backends", "cli", "bench")


def replaced(tree):
    """Word -> the term for it."""
    words = dict(ALSO)
    for line in (tree / GLOSSARY).read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == 3 and cells[0] != "term":
            for word in filter(None, (w.strip(" |") for w in cells[2].split(","))):
                words[word] = cells[0]
    return words


def form(word):
    """A phrase across the end of a line, in any case; its first word with an s, too."""
    first, *rest = word.split()
    ending = r"(?:s|es)?" if rest else ""
    return re.compile(r"\b" + r"\s+(?:///?\s*)?".join([re.escape(first) + ending, *map(re.escape, rest)]) + r"\b", re.I)


def uses(text, words):
    for word, term in words.items():
        for found in form(word).finditer(text):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), term


# What fits into 838 pixels.
FIRST_PAGES, WIDEST = ("README.md", "docs/backends.md", "docs/guide.md"), 98


def too_wide(text):
    """Numbers of the lines of code that a reader would have to scroll."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif code and len(line) > WIDEST:
            yield number


def main():
    tree = pathlib.Path(sys.argv[1])
    words = replaced(tree)
    if len(words) < 25:
        sys.exit(f"{GLOSSARY}: its table was not read")
    if sys.argv[2:] == ["--selftest"]:
        missed = [w for w in words if not list(uses(f"One of them\n{w.capitalize()} here.\n", words))]
        missed += [w for w in NAMELESS if not list(uses(f"// The one {w} it asks\n", NAMELESS))]
        wide = list(too_wide("\n".join(["x" * 99, "```", "x" * 98, "x" * 99, "```", "x" * 99])))
        sys.exit(f"not found: {missed}" if missed else 0 if wide == [4] else f"too wide: {wide}")
    wrong = 0
    for page in FIRST_PAGES:
        for line in too_wide((tree / page).read_text()):
            print(f"{page}:{line}: code of more than {WIDEST} columns")
            wrong += 1
    for page in sorted(p for glob in GLOBS for p in tree.glob(glob)):
        if page == tree / GLOSSARY:
            continue
        for line, word, term in uses(page.read_text(), words):
            print(f'{page.relative_to(tree)}:{line}: "{word}": the term is "{term}"')
            wrong += 1
    for page in sorted(p for folder in SOURCES for ending in ("cpp", "hpp") for p in (tree / folder).rglob(f"*.{ending}")):
        for line, word, term in uses(page.read_text(), NAMELESS):
            print(f'{page.relative_to(tree)}:{line}: "{word}": {term}')
            wrong += 1
    print(f"{len(words)} words looked for, {wrong} uses")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
