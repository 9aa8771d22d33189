#!/usr/bin/env python3
"""Whether the SQL in the tree is right as far as its text shows.

SQLite itself takes each section of sqlite's files, on the tables that they make. In PostgreSQL's and MySQL's each {word} is
defined and used; quotes and brackets are closed (that the servers take them is in backend.postgresql and backend.mysql). In
PostgreSQL's each function has its schema, since search_path may lead to another one.

sql.py TREE        every mistake on a line of its own, exit 1 when there is one
sql.py --selftest  each kind of mistake has to be noticed
"""
import pathlib
import re
import sqlite3
import sys

from sections import sections

# What looks like a call and is syntax, or names columns.
SYNTAX = {"in", "any", "exists", "values", "greatest", "least", "coalesce", "nullif", "unnest", "and", "or", "as", "on", "select",
          "materialized", "lateral", "using", "key", "with", "from", "conflict", "then", "if", "not"}
GIVEN = {"table", "literal", "comment", "place"}  # by statements.cpp


def named(text):
    """{name: text} of a file, without the lines that are for its reader."""
    return {name: re.sub(r"^---.*\n", "", sql, flags=re.M).strip() for name, _, sql in sections(text)}


def takes(known, within):
    """How many arguments a section has."""
    return max(map(int, re.findall(r"\{(\d)\}", known[within])), default=0)


def of_postgresql(files):
    known = {name: sql for text in files.values() for name, sql in named(text).items()}
    words = {name for path, text in files.items() if path.endswith("words.sql") for name in named(text)}
    used = set()
    for name, sql in known.items():
        for word, *arguments in (within.split() for within in re.findall(r"\{([^{}0-9][^{}]*)\}", sql)):
            used.add(word)
            if word not in words | GIVEN:
                yield f"{name}: {{{word}}} is nowhere defined"
            elif len(arguments) != (takes(known, word) if word in words else 0):
                yield f"{name}: {{{word}}} has {len(arguments)} arguments"
        bare = re.sub(r"'(?:[^']|'')*'", "", sql)
        if "'" in bare:
            yield f"{name}: a quote is not closed"
        if name not in words and bare.count("(") + sum(known[w].count("(") - known[w].count(")") for w in re.findall(
                r"\{(\w+)", bare) if w in words) != bare.count(")"):
            yield f"{name}: brackets that are not closed"
        for before, called in re.findall(r"([\w.\"]*?\.)?\b([a-z_]\w*)\(", bare, flags=re.I):
            if before != "pg_catalog." and called.lower() not in SYNTAX and not re.search(
                    r"(?:\bAS|\bINTO \{table\})\s+" + called + r"\(|CREATE TABLE", bare):
                yield f"{name}: {called}() without its schema"
    for word in sorted(words - used):
        yield f"{word}: not used"


def of_mysql(files):
    known = {name: sql for text in files.values() for name, sql in named(text).items()}
    words = {name for path, text in files.items() if path.endswith("words.sql") for name in named(text)}
    used = {word for sql in known.values() for word in re.findall(r"\{(\w+)\}", sql)}
    for name, sql in known.items():
        bare = re.sub(r"'[^']*'", "", sql)
        if "'" in bare:
            yield f"{name}: a quote is not closed"
        if bare.count("(") != bare.count(")"):
            yield f"{name}: brackets that are not closed"
    for word in sorted(used - words - GIVEN):
        yield f"{{{word}}} is nowhere defined"
    for word in sorted(words - used):
        yield f"{word}: not used"


def of_sqlite(files):
    known = {name: sql for text in files.values() for name, sql in named(text).items()}
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(known["create_schema"])
    for name, sql in known.items():
        for one in sql.split(";\n"):
            try:
                if not one.startswith("CREATE TABLE") and name != "from_first_layout":
                    db.execute("EXPLAIN " + one, [0] * len(set(re.findall(r"\?\d+", one))))
            except sqlite3.Error as error:
                yield f"{name}: {error}"


def selftest():
    for bad in ("SELECT {clok}", "SELECT {clock x}", "SELECT 'x", "SELECT (1", "SELECT now()"):
        files = {"words.sql": "-- name: clock\npg_catalog.clock_timestamp()\n", "s.sql": "-- name: a\nSELECT {clock}\n"}
        if list(of_postgresql(files)):
            sys.exit("a mistake is seen where there is none")
        files["t.sql"] = "-- name: b\n" + bad + "\n"
        if not list(of_postgresql(files)):
            sys.exit(f"not noticed: {bad}")
    for bad in ("SELECT {clok}", "SELECT 'x", "SELECT (1"):
        files = {"words.sql": "-- name: now\nSYSDATE(6)\n", "s.sql": "-- name: a\nSELECT {now}\n"}
        if list(of_mysql(files)):
            sys.exit("a mistake is seen where there is none")
        files["t.sql"] = "-- name: b\n" + bad + "\n"
        if not list(of_mysql(files)):
            sys.exit(f"not noticed: {bad}")
    for bad in ("SELEC 1", "SELECT missing FROM t"):
        if not list(of_sqlite({"x.sql": "-- name: create_schema\nCREATE TABLE t(a);\n-- name: b\n" + bad + "\n"})):
            sys.exit(f"not noticed: {bad}")


def main():
    if sys.argv[1] == "--selftest":
        return selftest()
    wrong = []
    for backend, check in (("mysql", of_mysql), ("postgresql", of_postgresql), ("sqlite", of_sqlite)):
        folder = pathlib.Path(sys.argv[1], "backends/sql", backend)
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql"))}
        if not files:
            sys.exit(f"there is no SQL in {folder}")
        wrong += [f"{backend}: {mistake}" for mistake in check(files)]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


main()
