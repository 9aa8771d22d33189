"""Every ```c block of the pages compiles as C99, and those with a main run: pages.py CC LIBRARY ROOT"""
import os
import re
import subprocess
import sys
import tempfile

PAGES = ("README.md", "docs/c.md")


def main():
    compiler, library, root = sys.argv[1:]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for page in PAGES:
            with open(os.path.join(root, page), encoding="utf-8") as file:
                text = file.read()
            for block in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
                count += 1
                line = text.count("\n", 0, block.start()) + 2
                code = block.group(1)
                if "int " not in code.split("{")[0]:  # statements
                    code = f"#include <holdfast.h>\n#include <stdio.h>\nint main(void) {{\n#line {line}\n{code}return 0;\n}}\n"
                code = code.replace("/tmp/", folder + "/")
                source, program = os.path.join(folder, "block.c"), os.path.join(folder, "block")
                with open(source, "w", encoding="utf-8") as out:
                    out.write(f'#line {line} "{page}"\n{code}')
                whole = re.search(r"\bmain\(", code)
                command = [compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
                           "-I", os.path.join(root, "core/c/include"), source]
                subprocess.run(command + (["-o", program, library] if whole else ["-c", "-o", source + ".o"]), check=True)
                if whole:
                    subprocess.run([program], check=True, env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library)})
    if count < 3:
        sys.exit(f"only {count} blocks were found")
    print(f"{count} blocks")


if __name__ == "__main__":
    main()
