"""discarded.py COMPILER FLAGS...: results that may not be dropped are just those of discarded.cpp."""
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(__file__).with_name("discarded.cpp")
marked = {n for n, line in enumerate(source.read_text().splitlines(), 1) if "// discarded" in line}
told = subprocess.run([*sys.argv[1:], "-std=c++20", "-fsyntax-only", "-Wall", str(source)], text=True,
                      stderr=subprocess.PIPE, check=True).stderr
warned = {int(n) for n in re.findall(r"discarded\.cpp:(\d+):\d+: warning: ignoring return value", told)}
for n in sorted(marked ^ warned):
    print(f"discarded.cpp:{n}: " + ("dropped without a warning" if n in marked else "warns, and has no mark"))
print(f"{len(marked & warned)} of {len(marked)} marked statements warn")
sys.exit(bool(marked ^ warned) or not marked)
