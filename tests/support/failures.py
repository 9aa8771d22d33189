#!/usr/bin/env python3
"""What failed in a ctest report, and the lines that say why: at the end of a long log that is what a reader looks for.

failures.py REPORT PRESET
"""
import re
import sys
import xml.etree.ElementTree

LINES = 25
STACK = re.compile(r"\s*#\d+ ")
TELLING = re.compile(r"FAIL|[Ff]ailed|[Ee]rror|violat|refuted|expected|REQUIRE|CHECK|seed|void|ended with|not hold")


def telling(output):
    """The lines around each that says what is wrong, and the last ones."""
    lines = [line for line in output.rstrip().splitlines() if not STACK.match(line)]
    kept = set(range(len(lines) - 5, len(lines)))
    for number, line in enumerate(lines):
        if TELLING.search(line):
            kept |= {number, number + 1}
    return [lines[number][:300] for number in sorted(kept) if 0 <= number < len(lines)][-LINES:]


def main(report, preset):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            continue
        print(f"-- {case.get('name')} ({preset})")
        output = case.findtext("system-out") or case.findtext("failure") or "no output"
        print("\n".join("   " + line for line in telling(output)))


if __name__ == "__main__":
    main(*sys.argv[1:])
