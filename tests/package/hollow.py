#!/usr/bin/env python3
"""Installs a build folder that was only configured: what would be compiled is there, and empty. So an installation can be
looked at in seconds, file by file.

hollow.py BUILD [--prefix FOLDER]    DESTDIR as for `cmake --install`
"""
import pathlib
import re
import subprocess
import sys


def install(build, *options, env=None):
    for script in build.rglob("cmake_install.cmake"):
        for path in map(pathlib.Path, re.findall(rf'"({re.escape(str(build))}/[^"$]+)"', script.read_text(encoding="utf-8"))):
            if not path.exists() and path.suffix != ".cmake":
                path.touch()
    subprocess.run(["cmake", "--install", build, *options], check=True, stdout=subprocess.DEVNULL, env=env)


if __name__ == "__main__":
    install(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:])
