#!/usr/bin/env python3
"""What failed in a ctest report, and the lines that say why: at the end of a long log that is what a reader looks for.

failures.py REPORT PRESET
"""
import re
import sys
import xml.etree.ElementTree

LINES, WIDTH = 15, 200
STACK = re.compile(r"\s*#\d+ ")
OURS = re.compile(r"/(core|backends|cli|bench|lab|tests)/\S+:\d+")
FRAMES = 12
TELLING = re.compile(r"FAIL|[Ff]ailed|[Ee]rror|violat|refuted|expected|REQUIRE|CHECK|seed|void|ended with|not hold")
FAILED = re.compile(r"\S+:\d+: FAILED:")  # Catch2: values and messages follow, up to an empty line
MESSAGES = 14


def assertion(lines, number):
    """The lines of what Catch2 says of a failed assertion, which begins here, and of the test's name between two rules."""
    end = number + 1
    while end < len(lines) and end <= number + MESSAGES and lines[end].strip():
        end += 1
    rules = [i for i in range(number) if lines[i].startswith("-----")][-2:]
    return {*range(number, end), *range(rules[0] + 1, rules[1])} if len(rules) == 2 else {*range(number, end)}


def telling(output):
    """What Catch2 says of each failed assertion, the first frames of a sanitizer's stacks that are ours, the lines around
    each that says what is wrong, and the last ones."""
    frames = 0
    lines = []
    for line in output.rstrip().splitlines():
        if STACK.match(line):
            frames += 1
            if frames > FRAMES or not OURS.search(line):
                continue
        lines.append(line)
    asserted = set()
    others = set(range(len(lines) - 5, len(lines)))
    for number, line in enumerate(lines):
        if FAILED.match(line):
            asserted |= assertion(lines, number)
        elif STACK.match(line):
            others.add(number)
        elif TELLING.search(line):
            others |= {number, number + 1}
    kept = {*sorted(asserted)[:LINES], *sorted(others)[-LINES:]}
    return [lines[number][:WIDTH] for number in sorted(kept) if 0 <= number < len(lines)]


def main(report, preset):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            continue
        print(f"-- {case.get('name')} ({preset})")
        output = case.findtext("system-out") or case.findtext("failure") or "no output"
        print("\n".join("   " + line for line in telling(output)))


if __name__ == "__main__":
    main(*sys.argv[1:])
