#!/usr/bin/env python3
"""Whether docs/compatibility.md names the versions that the tests of this machine run with.

versions.py ROOT             a line for each that differs or is missing; exit 1 when there is one
versions.py ROOT --selftest  a version that is too high in each row has to be noticed
"""
import pathlib
import re
import subprocess
import sys

# What prints its version, for each row of the table.
ASKED = {
    "compiler": ["g++", "-dumpfullversion"],
    "CMake": ["cmake", "--version"],
    "Boost": ["sed", "-n", 's/^#define BOOST_LIB_VERSION "\\(.*\\)"/\\1/p', "/usr/include/boost/version.hpp"],
    "Redis": ["redis-server", "--version"],
    "hiredis": ["pkg-config", "--modversion", "hiredis"],
    "PostgreSQL": ["dpkg-query", "-W", "-f=${Version}", "postgresql-15"],
    "PgBouncer": ["pgbouncer", "--version"],
    "libpqxx": ["pkg-config", "--modversion", "libpqxx"],
    "MariaDB": ["dpkg-query", "-W", "-f=${Version}", "mariadb-server-core"],
    "MariaDB Connector/C": ["pkg-config", "--modversion", "libmariadb"],
    "SQLite": ["pkg-config", "--modversion", "sqlite3"],
    "ZooKeeper servers": ["dpkg-query", "-W", "-f=${Version}", "libzookeeper-java"],
    "etcd": ["etcd", "--version"],
    "OpenSSL": ["pkg-config", "--modversion", "openssl"],
}


def rows(page):
    table = re.search(r"<!-- versions: .*?-->\n(.*?)<!-- end of versions -->", page, re.S)[1]
    cells = [[c.strip() for c in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: re.search(r"[\d.]+", row[1])[0] for row in cells}


def version_here(command):
    said = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout
    return re.search(r"\d+(?:[._]\d+)+", said)[0].replace("_", ".")


def wrong(said, here):
    lines = [f"{what}: the page has {said.get(what, 'no such row')}, the tests run with {version}" for what, version in here.items()
             if not f"{version}.".startswith(f"{said.get(what, 'none')}.")]
    return lines + [f"{what}: nobody here asks for its version" for what in said if what not in here]


def main():
    page = (pathlib.Path(sys.argv[1]) / "docs/compatibility.md").read_text()
    said, here = rows(page), {what: version_here(command) for what, command in ASKED.items()}
    if sys.argv[2:] == ["--selftest"]:
        quiet = [what for what in said if len(wrong(said | {what: "99.9"}, here)) != 1]
        quiet += [] if wrong({**said, "pigeon": "1"}, here) else ["a row that nobody asks for"]
        sys.exit(f"not noticed: {quiet}" if quiet else 0)
    found = wrong(said, here)
    print(*found, f"{len(said)} versions, {len(found)} wrong", sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
