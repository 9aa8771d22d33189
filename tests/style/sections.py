"""The sections of a file of texts, as holdfast_texts() of cmake/HoldfastTexts.cmake takes them."""
import re


def sections(text):
    """(name, number of its first line, its text) of each."""
    begun = list(re.finditer(r"^-- name: (\w+)\n", text, re.M))
    for this, following in zip(begun, begun[1:] + [None]):
        end = following.start() if following else len(text)
        yield this[1], text[:this.end()].count("\n"), text[this.end():end]
