#!/usr/bin/env python3
"""faults.py ROOT [--write | --selftest]: docs/developing/faults.md is whole, and what it names is there.

Every fault has, for every backend, a test that exists or a written reason. A case of the conformance
suite has to assert something on that backend, by the table in docs/developing/cases.md. --write makes the table
at the top anew from the rows below it; --selftest breaks the page in each way and wants each complaint.
"""
import pathlib
import re
import sys

REASONS = ["not applicable", "not provoked"]
BEGIN, END = "<!-- at a glance -->\n", "<!-- /at a glance -->"
REFERENCE = re.compile(r'`([^`]+)`: "([^"]+)"')


def backends_of(root, page):
    """Every backend of the tree but memory, which has no server and no file that could fail: in the order of the
    page's table, and what it lacks at the end."""
    texts = [p.read_text(encoding="utf-8") for p in (root / "backends").rglob("CMakeLists.txt")]
    built = {n for t in texts for n in re.findall(r"holdfast_backend\((\w+)", t)} - {"memory"}
    columns = [word.strip() for word in page.split(BEGIN)[1].splitlines()[0].split("|")]
    return [b for b in columns if b in built] + sorted(built - set(columns))


def cells_of(page, known):
    """{fault: {backend: text}} in the page's order, and what is wrong with the rows themselves."""
    cells, wrong = {}, []
    for line in page.split(END)[-1].splitlines():
        parts = [p.strip() for p in line.strip().strip("|").split("|")]
        if not line.startswith("|") or parts[0] == "fault" or set(parts[0]) == {"-"}:
            continue
        if len(parts) != 3:
            wrong.append(f"not three columns: {line}")
            continue
        fault, backends, text = parts
        row = cells.setdefault(fault, {})
        for b in re.split(r",\s*", backends):
            if b not in known:
                wrong.append(f"{fault}: there is no backend {b!r}")
            elif b in row:
                wrong.append(f"{fault}: {b} is there twice")
            else:
                row[b] = text
    return cells, wrong


def tests_of(root, path):
    """{name: its tags} of one file of tests; None when there is no such file."""
    file = root / "tests" / path
    if not file.is_file():
        return None
    text = file.read_text(encoding="utf-8")
    if path.endswith(".py"):
        return {name: "" for name in re.findall(r"def (test_\w+)\(", text)}
    literal = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    found = re.findall(r"TEST_CASE\(\s*" + literal + r"(?:,\s*" + literal + r")?\)", text)
    whole = lambda words: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', words)).replace('\\"', '"')
    return {whole(name): whole(tags) for name, tags in found}


def folders_of(root, backend):
    """Below tests/backends: its own, what it compiles of others, and what asks several backends."""
    build = (root / "tests/backends" / backend / "CMakeLists.txt").read_text(encoding="utf-8")
    return {backend, "names", *re.findall(r"\.\./(\w+)/\*\.cpp", build)}


def asserted(root):
    """{backend: the cases of which the conformance suite asserts something}."""
    rows = [[c.strip() for c in line.strip("|\n").split("|")]
            for line in (root / "docs/developing/cases.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("|")]
    return {b: {row[0] for row in rows[2:] if row[i]} for i, b in enumerate(rows[0])}


def kind_of(text):
    for reason in REASONS:
        if text.startswith(reason):
            return reason
    return "test" if text else ""


def complaints(root, page):
    known = backends_of(root, page)
    cells, wrong = cells_of(page, known)
    cases = asserted(root)
    for fault, row in cells.items():
        for b in known:
            text = row.get(b, "")
            at = f"{fault}: {b}"
            if not text:
                wrong.append(f"{at}: the cell is empty")
                continue
            if kind_of(text) != "test":
                if len(text.split(":", 1)[-1].strip()) < 10 or ":" not in text:
                    wrong.append(f"{at}: no reason is given")
                continue
            references = REFERENCE.findall(text)
            if not references or REFERENCE.sub("", text).strip("; "):
                wrong.append(f"{at}: neither tests nor a reason: {text}")
            for path, name in references:
                tests = tests_of(root, path)
                if tests is None:
                    wrong.append(f"{at}: there is no file tests/{path}")
                elif name not in tests:
                    wrong.append(f"{at}: tests/{path} has no test {name!r}")
                elif path.startswith("backends/") and path.split("/")[1] not in folders_of(root, b):
                    wrong.append(f"{at}: tests/{path} is of another backend")
                elif path.startswith("conformance/"):
                    numbers = re.findall(r"\[(T\d+)\]", tests[name])
                    if numbers and not cases.get(b, set()).intersection(numbers):
                        wrong.append(f"{at}: the suite asserts nothing of {name!r} there")
    if not cells:
        wrong.append("the page has no rows")
    if glance(cells, known) not in page:
        wrong.append("the table at the top is another: run tests/docs/faults.py with --write")
    return wrong


def glance(cells, known):
    lines = ["| fault | " + " | ".join(known) + " |", "|---" * (len(known) + 1) + "|"]
    for fault, row in cells.items():
        lines.append(f"| {fault} | " + " | ".join(kind_of(row.get(b, "")) for b in known) + " |")
    kinds = [kind_of(text) for row in cells.values() for text in row.values()]
    return "\n".join(lines) + f"\n\n{len(cells)} faults, {len(kinds)} cells: " + ", ".join(
        f"{kinds.count(k)} {k}" for k in ["test"] + REASONS) + ".\n"


def selftest(root, page):
    """Each way of breaking the page, and the complaint that it has to bring about."""
    rows = page.split(END)[1]
    reason = re.search(r"not applicable: [^|]+ \|", rows)[0]
    path, name = REFERENCE.search(rows).groups()
    lossy = '`conformance/network.cpp`: "T1: a connection cut anywhere in acquire, renew and release"'
    sqlite = re.search(r"\| sqlite \| ([^|]+) \|", rows)[1]
    whole_row = re.search(r"\n\| [^|]+ \| zookeeper \| [^\n]+", rows)[0]
    foreign = re.search(r"\| redis \| (`backends/redis/[^|]+) \|", rows)[1]
    broken = {
        "the cell is empty": rows.replace(whole_row, "", 1),
        "no reason is given": rows.replace(reason, "not applicable: |", 1),
        "there is no file": rows.replace(path, "conformance/absent.cpp", 1),
        "has no test": rows.replace(name, name + " not", 1),
        "asserts nothing of": rows.replace(f"| sqlite | {sqlite}", f"| sqlite | {lossy}", 1),
        "is of another backend": rows.replace(f"| redis | {foreign}", f"| redis | {sqlite}", 1)
        if sqlite.startswith("`backends/sqlite") else rows.replace(
            whole_row, re.sub(r"zookeeper \| .*", f"zookeeper | {foreign} |", whole_row), 1),
        "neither tests nor a reason": rows.replace(f"| redis | {foreign}", "| redis | of course", 1),
        "is there twice": rows.replace("| sqlite |", "| redis, sqlite |"),
        "there is no backend": rows.replace("| sqlite |", "| sqlight |", 1),
    }
    failed = []
    for words, text in broken.items():
        if text == rows:
            failed.append(f"{words}: nothing was broken")
        elif not any(words in w for w in complaints(root, page.replace(rows, text))):
            failed.append(f"{words}: broken, and nobody complains")
    stale = page.replace("| test |", "| not provoked |", 1)
    if not any("is another" in w for w in complaints(root, stale)):
        failed.append("a stale table at the top: nobody complains")
    return failed


def main():
    root = pathlib.Path(sys.argv[1])
    file = root / "docs/developing/faults.md"
    page = file.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        head, rest = page.split(BEGIN)[0], page.split(END)[1]
        known = backends_of(root, page)
        page = head + BEGIN + glance(cells_of(END + rest, known)[0], known) + END + rest
        file.write_text(page, encoding="utf-8")
    wrong = selftest(root, page) if "--selftest" in sys.argv else complaints(root, page)
    print(*wrong, f"docs/developing/faults.md: {len(wrong)} complaints", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
