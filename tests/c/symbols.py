"""What the C library shows: the functions of holdfast.h, all of them and nothing else, and a SONAME whose ABI is kept (abi.py).

symbols.py LIBRARY HEADER
"""
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def functions(header):
    return re.findall(r"^HF_API .*?\b(hf_\w+)\(", header, re.M)


def main():
    library, header = sys.argv[1:]
    declared = set(functions(pathlib.Path(header).read_text(encoding="utf-8")))
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    mistakes = [f"{name} is exported, and no function of holdfast.h" for name in sorted(exported - declared)]
    mistakes += [f"{name} is in holdfast.h and not exported" for name in sorted(declared - exported)]
    soname = re.search(r"soname: \[(.+)\]", output("readelf", "-d", library))[1]
    if not (pathlib.Path(__file__).resolve().parents[2] / "core/c" / f"{soname}.abi").exists():
        mistakes.append(f"the SONAME is {soname}, of which no ABI is kept in core/c")
    if len(declared) < 15:
        mistakes.append(f"only {len(declared)} functions were found in {header}")
    print("\n".join(mistakes) or f"{len(exported)} functions")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
