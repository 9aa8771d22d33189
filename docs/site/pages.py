"""Makes of the tree's Markdown pages what doxygen reads: one file per page, with names for its headings and links that lead to
pages of the site.

Doxygen 1.9.4 knows links from page to page, but none to a heading of another page, and it names headings by numbers. So each
heading is named as a forge names it, behind the page's name (doxygen's names are global), and the mark that ends the prefix lets
unmarked() remove it from what doxygen has written.
"""
import html
import os
import pathlib
import re
import shutil

# The order of the first level; what else there is in docs/ comes before "extending".
FIRST = ["docs/install.md", "docs/guide.md", "docs/c.md", "docs/python.md", "examples/README.md", "docs/backends.md", "docs/guarantees.md", "docs/configuration.md", "docs/operations.md", "docs/runbooks.md",
         "docs/doctor.md", "docs/deploy",
         "docs/security.md", "docs/compatibility.md", "docs/glossary.md"]
LAST = ["docs/extending.md", "docs/adr", "docs/developing/README.md", "docs/report/README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
FOLDERS = ("docs", "backends", "examples", "tests", "bench")
SKIPPED = {"node_modules", "build"}
# Folders without a page of their own: title and text of one.
MADE = {"docs/adr": ("Decisions", "Why things are as they are: a record for each decision that is not obvious."),
        "docs/deploy": ("Deployment", "How to start jobs under a lock.")}
MARK = "-0-"  # ends the prefix of a heading's name; in no name of a page or heading


def name_of(path):
    """docs/guide.md -> guide, backends/redis/README.md -> backends-redis, SECURITY.md -> project-security."""
    if "/" not in path and path != "README.md":
        path = f"project/{path}"
    path = re.sub(r"(^|/)README$", "", path.removesuffix(".md")).removeprefix("docs/")
    return re.sub(r"[^a-z0-9]+", "-", path.lower()) or "index"


def heading_names(lines):
    """Line number -> (depth, text, name) of each heading, named as forges do it: a second one of a name gets a number."""
    found, used, code = {}, {}, False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            code = not code
        match = None if code else re.match(r"(#+) +(.*)", line)
        if match:
            name = re.sub(r"[^\w\- ]", "", match[2].strip().lower()).replace(" ", "-")
            used[name] = used.get(name, -1) + 1
            found[number] = (len(match[1]), match[2], name + (f"-{used[name]}" if used[name] else ""))
    return found


def unmarked(text):
    return re.sub(rf"hf-[a-z0-9-]+?{MARK}", "", text)


class Site:
    def __init__(self, root):
        self.root = root
        files = [*root.glob("*.md"), *(f for folder in FOLDERS for f in sorted((root / folder).rglob("*.md")))]
        self.pages = [f.relative_to(root).as_posix() for f in files if not SKIPPED & set(f.relative_to(root).parts)]
        names = [name_of(page) for page in [*self.pages, *MADE]]
        if len(set(names)) != len(names):
            raise SystemExit(f"two pages have one name: {sorted(n for n in names if names.count(n) > 1)}")
        self.copies = {}  # files that pages link to: path in the tree -> path in the site

    def parent(self, page):
        """The page above, or None for the main page's own."""
        if page == "README.md":
            return None
        for folder in pathlib.PurePosixPath(page).parents:
            for above in (f"{folder}/README.md", f"{folder}.md", f"docs/{folder}.md", str(folder)):
                if above != page and (above in self.pages or above in MADE):
                    return above
        return "docs/developing/README.md" if page.startswith(("tests/", "bench/")) else "README.md"

    def children(self, page):
        below = [p for p in [*self.pages, *MADE] if p != page and self.parent(p) == page]
        if page == "README.md":
            first, last = [p for p in FIRST if p in below], [p for p in LAST if p in below]
            below = first + [p for p in below if p not in FIRST + LAST] + last
        return below

    def target(self, page, link):
        """Where a link of a page leads on the site."""
        path, _, anchor = link.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        for candidate in (full, f"{full}/README.md"):
            if candidate in self.pages or candidate in MADE:
                name = name_of(candidate)
                return f"{name}.html" + (f"#hf-{name}{MARK}{anchor}" if anchor else "")
        if not (self.root / full).is_file():
            raise SystemExit(f"{page}: {link}: there is no such file")
        self.copies[full] = f"files/{full}" + ("" if full.endswith((".html", ".json", ".svg")) else ".txt")
        return self.copies[full]

    def text(self, page, text):
        """A piece of a line outside of code: its links and images, and what doxygen would take for a command."""
        def image(match):
            return f'<img src="{self.target(page, match[2])}" alt="{html.escape(match[1])}"/>'

        def link(match):
            return match[0] if re.match(r"[a-z]+:", match[1]) else f"]({self.target(page, match[1])})"
        text = re.sub(r"\\([_#<>~])", r"\1", text)
        text = re.sub(r"(?<![\w&(/])#(?=\w)|@(?=\w)", r"\\\g<0>", text)
        text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", image, text)
        return re.sub(r"\]\(([^)\s]+)\)", link, text)

    def converted(self, page):
        name, code, out, above = name_of(page), False, [], 0
        lines = (self.root / page).read_text(encoding="utf-8").splitlines()
        names = heading_names(lines)
        for number, line in enumerate(lines):
            if line.startswith("```"):
                code = not code
            if code or line.startswith("```"):
                out.append(line)
            elif number in names:
                depth, title, anchor = names[number]
                depth = above = min(depth, above + 1)  # doxygen takes no heading that is two levels below the last one
                mine = ("mainpage" if page == "README.md" else name) if depth == 1 else f"hf-{name}{MARK}{anchor}"
                out.append(f"{'#' * depth} {title} {{#{mine}}}")
            else:
                out.append(line)
        # Links may go over the end of a line, code spans too; fences and headings are whole lines.
        blocks = re.split(r"(^```.*?^```$|^#+ .*?$)", "\n".join(out), flags=re.M | re.S)
        for i in range(0, len(blocks), 2):
            spans = re.split(r"(`+[^`]+`+)", blocks[i])
            # A link may have code in its text: what is inside of code is kept aside meanwhile.
            # With one mark doxygen ends code at an apostrophe, too.
            kept = [re.sub(r"^`(?!`)(.*)`$", r"``\1``", span, flags=re.S) for span in spans[1::2]]
            rest = self.text(page, "\0".join(spans[0::2]))
            blocks[i] = "".join(a + b for a, b in zip(rest.split("\0"), [*kept, ""]))
        return "".join(blocks) + "\n" + self.below(page)

    def below(self, page):
        children = self.children(page)
        if not children:
            return ""
        head = f"\n## All pages {{#hf-index{MARK}all-pages}}\n\n" if page == "README.md" else "\n**Pages below this one**\n\n"
        return head + "".join(f"- @subpage {name_of(child)}\n" for child in children)

    def write(self, folder):
        """Every page into the folder."""
        for page in self.pages:
            (folder / f"{name_of(page)}.md").write_text(self.converted(page), encoding="utf-8")
        for page, (title, text) in MADE.items():
            made = f"# {title} {{#{name_of(page)}}}\n\n{text}\n{self.below(page)}"
            (folder / f"{name_of(page)}.md").write_text(made, encoding="utf-8")

    def headings(self):
        """(heading, address, title of the page) of all that a reader may look for."""
        for page in self.pages:
            names = heading_names((self.root / page).read_text(encoding="utf-8").splitlines())
            plain = [(depth, re.sub(r"[`*]|\\(?=\W)", "", text), anchor) for depth, text, anchor in names.values()]
            for depth, text, anchor in plain:
                yield text, f"{name_of(page)}.html" + (f"#{anchor}" if depth > 1 else ""), plain[0][1]

    def copy_files(self, site):
        for source, target in self.copies.items():
            (site / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / source, site / target)
