#!/usr/bin/env python3
"""snippets.py OUT PAGE...: one C++ file with every ```cpp block of the pages.

A block with a function `main` or with #include lines is compiled as it stands; any other is the body of
a function, a coroutine when it awaits something. prelude.hpp stands for the reader's own program.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def function(number, body):
    if "co_await" in body:
        return (f"[[maybe_unused]] asio::awaitable<int> snippet_{number}() {{\n@LINE@{body}"
                "co_return 0;\n}\n")
    return f"[[maybe_unused]] int snippet_{number}() {{\n@LINE@{body}return 0;\n}}\n"


def main():
    out = pathlib.Path(sys.argv[1])
    parts, heads, count = [], [], 0
    for page in map(pathlib.Path, sys.argv[2:]):
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            body = match.group(1)
            includes = "".join(re.findall(r"^#include.*\n", body, re.MULTILINE))
            heads.append(includes)
            rest = re.sub(r"^#include.*$", "", body, flags=re.MULTILINE)
            place = f'#line {line} "{page}"\n'
            count += 1
            if re.search(r"^\w[^\n;]*\bmain\(", rest, re.MULTILINE) or includes:
                rest = re.sub(r"\bmain\(", f"main_{count}(", rest)
                parts.append(f"namespace page_{count} {{\n{place}{rest}}}\n")
            else:
                parts.append(function(count, rest).replace("@LINE@", place))
    if count == 0:
        sys.exit("no C++ block was found: the pages or the pattern are wrong")
    out.write_text("".join(heads) + '#include "prelude.hpp"\n' + "namespace {\n" + "".join(parts)
                   + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
