"""Adds the headings of the pages to doxygen's search, under each of their words: by itself it finds classes, members and pages by the
beginning of their names."""
import html
import json
import re

LITTLE = {"the", "and", "for", "with", "what", "how", "who", "which", "are", "does", "was", "not", "one", "its", "this", "that", "has", "can", "should"}


def key(text):
    """As doxygen's search.js makes it of what is typed."""
    return "".join(c if re.match(r"[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in text.lower())


def entries(headings):
    """First letter -> entries, one for each word of each (heading, address, page)."""
    found = {}
    for number, (heading, address, page) in enumerate(headings):
        for word in re.finditer(r"[^\W_]{3,}", heading):
            if word[0].lower() in LITTLE:
                continue
            rest = heading[word.start():]
            entry = [f"{key(rest)}_h{number}", [html.escape(heading), [f"../{address}", 1, html.escape(page)]]]
            found.setdefault(rest[0].lower(), []).append(entry)
    return found


def add(site, headings):
    folder = site / "search"
    index = folder / "searchdata.js"
    text = index.read_text(encoding="utf-8")
    letters = re.search(r'0: "(.*?)"', text)[1]
    for letter, new in sorted(entries(headings).items()):
        if letter not in letters:
            number = f"{len(letters):x}"
            page = (folder / "all_0.html").read_text(encoding="utf-8").replace("all_0.js", f"all_{number}.js")
            (folder / f"all_{number}.html").write_text(page, encoding="utf-8")
            (folder / f"all_{number}.js").write_text("var searchData=\n[\n];\n", encoding="utf-8")
            letters += letter
        file = folder / f"all_{letters.index(letter):x}.js"
        old = file.read_text(encoding="utf-8").rstrip().removesuffix("];").rstrip()
        lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in new)
        file.write_text(old + ("" if old.endswith("[") else ",") + "\n" + lines + "\n];\n", encoding="utf-8")
    index.write_text(re.sub(r'0: ".*?"', lambda _: f'0: "{letters}"', text, count=1), encoding="utf-8")
