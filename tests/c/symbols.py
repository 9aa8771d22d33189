"""What the C library shows: the functions of holdfast.h, all of them and nothing else, and its SONAME.

symbols.py LIBRARY HEADER
"""
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def main():
    library, header = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        declared = set(re.findall(r"^HF_API .*?\b(hf_\w+)\(", file.read(), re.M))
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    mistakes = [f"{name} is exported, and no function of holdfast.h" for name in sorted(exported - declared)]
    mistakes += [f"{name} is in holdfast.h and not exported" for name in sorted(declared - exported)]
    if "soname: [libholdfast-c.so.1]" not in output("readelf", "-d", library):
        mistakes.append("the SONAME is not libholdfast-c.so.1")
    if len(declared) < 15:
        mistakes.append(f"only {len(declared)} functions were found in {header}")
    print("\n".join(mistakes) or f"{len(exported)} functions")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
