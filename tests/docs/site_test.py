#!/usr/bin/env python3
"""The site: built, every link of it followed, and opened in a real browser.

site_test.py CHROMIUM ROOT SITE              builds it into SITE, and judges it
site_test.py CHROMIUM ROOT SITE --selftest   each fault that the test looks for is put into a copy, and has to be found
site_test.py CHROMIUM ROOT SITE --pictures FOLDER [PAGE...]  nothing is judged: PNG files, to look at
"""
import base64
import html.parser
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser

PAGES = ["index.html", "guide.html", "classholdfast_1_1Lease.html"]
WIDTHS = [1280, 400]
SECONDS = 120  # of the processor, for the whole site
WRONG = r"""
(async () => {
  const wrong = [];
  // A script adds images after the page, and may replace them.
  const isShown = (i) => i.complete && i.naturalWidth > 0;
  const missing = () => [...document.images].filter((i) => !isShown(i));
  for (const end = Date.now() + 20000; missing().length && Date.now() < end;) await new Promise((done) => setTimeout(done, 20));
  const name = (e) => `<${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''} ${(e.textContent || '').trim().slice(0, 40)}>`;
  // What scrolls by itself may have more than it shows: the tree, code, a wide table.
  const scrolls = (e) => /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
  for (const box of [document.documentElement, document.querySelector('#doc-content')]) {
    if (!box || box.scrollWidth <= box.clientWidth) continue;
    const right = box.getBoundingClientRect().left + box.clientWidth;
    const out = [...box.querySelectorAll('*')].filter((e) => {
      if (e.getBoundingClientRect().right <= right + 0.5) return false;
      for (let up = e.parentElement; up && up !== box; up = up.parentElement) if (scrolls(up)) return false;
      return true;
    });
    wrong.push(`the page is ${box.scrollWidth} px wide in a window of ${box.clientWidth}: ${out.slice(-3).map(name).join(', ')}`);
  }
  for (const i of missing()) wrong.push(`the image ${i.src} is not shown`);
  if (document.querySelector('.contents').innerText.trim().length < 500) wrong.push('the page is empty');
  return wrong;
})()
"""


class Page(html.parser.HTMLParser):
    """What one page offers and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names.update(filter(None, (attrs.get("id"), attrs.get("name") if tag == "a" else None)))
        self.links.update(filter(None, (attrs.get("href"), attrs.get("src"), attrs.get("data") if tag == "object" else None)))


def broken_links(site):
    """Links in pages, and those in the lists from which the tree and the search are made."""
    pages = {file.name: Page(file.read_text(encoding="utf-8")) for file in site.glob("*.html")}
    links = {(name, link) for name, page in pages.items() for link in page.links}
    for file in [*site.glob("*.js"), *site.glob("search/*.js")]:
        if file.name.startswith("navtreeindex"):
            continue  # places in the tree by address, also of what has no place
        text = file.read_text(encoding="utf-8").split("var NAVTREEINDEX")[0]
        found = re.findall(r"""["'](?:\.\./)?([\w-]+\.html(?:#[^"'\\]*)?)["']""", text)
        links |= {(file.name, link) for link in found}
    wrong = []
    for name, link in sorted(links):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        path = path or name
        if not (site / path).exists():
            wrong.append(f"{name}: {link}: there is no such file")
        elif anchor and path in pages and anchor not in pages[path].names:
            wrong.append(f"{name}: {link}: there is no such heading")
    return wrong if len(links) > 1000 else [f"only {len(links)} links were found"]


def without_pages(site, root):
    """Pages of docs/ that the site's tree does not name."""
    tree = "".join(f.read_text(encoding="utf-8") for f in site.glob("navtreedata.js"))
    tree += "".join(f.read_text(encoding="utf-8") for f in site.glob("*.js"))
    return [f"{p.name}: not in the site's tree" for p in root.glob("docs/*.md") if f"{p.stem}.html" not in tree]


def loaded(browser, page, width, dark=False):
    """Opens the page; its tree comes a little later. Wrong is a tree without pages, where there is room for one."""
    browser.open(page.as_uri(), width, 900, dark)
    count = "[...document.querySelectorAll('#nav-tree .label')].filter((e) => e.offsetParent).length"
    end = time.monotonic() + 30
    while width > 767 and browser.run(count) < 20:
        if time.monotonic() > end:
            return [f"the tree has {browser.run(count)} lines"]
        time.sleep(0.05)
    return []


def results_of(browser):
    """The links that the search shows: in a frame, which a page in a file may not look into, but a debugger may."""
    frames = browser.call("Page.getFrameTree")["frameTree"].get("childFrames", [])
    contexts = [e["params"]["context"] for e in browser.events if e.get("method") == "Runtime.executionContextCreated"]
    for context in reversed(contexts):
        if frames and context["auxData"].get("frameId") == frames[0]["frame"]["id"]:
            script = "[...document.querySelectorAll('.SRResult')].filter((r) => r.offsetParent).flatMap((r) => [...r.querySelectorAll('a')].map((a) => a.href))"
            answer = browser.call("Runtime.evaluate", expression=script, returnByValue=True, contextId=context["id"])
            return answer["result"].get("value", [])
    return []


def searched(browser, word, page):
    """Types the word into the search; nothing is wrong when a result leads to the page."""
    browser.run("(() => { const f = document.querySelector('#MSearchField'); f.focus(); f.select(); })()")
    for letter in word:
        browser.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter, windowsVirtualKeyCode=ord(letter.upper()))
        browser.call("Input.dispatchKeyEvent", type="keyUp", key=letter, windowsVirtualKeyCode=ord(letter.upper()))
    shown = "document.querySelector('#MSearchResultsWindow').style.display === 'block'"
    end, results = time.monotonic() + 20, []
    while time.monotonic() < end:
        try:
            results = results_of(browser) if browser.run(shown) else []
        except RuntimeError:
            results = []  # the frame goes from one list to the next
        if any(page in r for r in results):
            return []
        time.sleep(0.05)
    return [f'the search for "{word}" does not find {page}, but {results[:5]}']


def seen(browser, site, pages=PAGES, widths=WIDTHS):
    wrong = []
    for page in pages:
        for width in widths:
            found = loaded(browser, site / page, width) + browser.run(WRONG)
            if width == 1280 and page == PAGES[0]:
                found += (searched(browser, "lease", "classholdfast_1_1Lease.html")
                          or searched(browser, "classes", "guarantees.html#safety-classes"))  # a second one on the same page
            wrong += [f"{page}, {width} px: {w}" for w in found + [f"console: {e}" for e in browser.errors()]]
    return wrong


def built(root, site):
    done = subprocess.run([root / "docs/site/build", site], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    print(done.stdout, f"{seconds:.0f} s of the processor", flush=True)
    if done.returncode != 0:
        sys.exit(1)
    return [] if seconds < SECONDS else [f"it took longer than {SECONDS} s"]


def selftest(browser, site, folder):
    """(what has to be found, the file that has the fault, what is put in for what, who looks)"""
    at = '<div class="contents">'
    see = lambda copy: seen(browser, copy, PAGES[:1])
    faults = [("there is no such file", "guide.html", at, at + '<a href="pigeon.html">x</a>', broken_links),
              ("there is no such heading", "guide.html", at, at + '<a href="guarantees.html#pigeon">x</a>', broken_links),
              ("there is no such heading", "guarantees.html", 'id="safety-classes"', 'id="pigeon"', broken_links),
              ("console: said", "index.html", at, at + "<script>console.error('said')</script>", see),
              ("console: Error: thrown", "index.html", at, at + "<script>throw new Error('thrown')</script>", see),
              ("400 px: the page is", "index.html", at, at + "<div style='width:700px'>wide</div>", see),
              ("1280 px: the page is", "index.html", at, at + "<div style='width:1300px'>wide</div>", see),
              ("is not shown", "index.html", at, at + "<img src='files/pigeon.svg'>", see),
              ("the page is empty", "index.html", at, '<div class="contents"></div><div class="gone" hidden>', see),
              ("does not find", "search/search.js", "function", "functoin", see)]
    missed = []
    for says, file, old, new, look in faults:
        copy = folder / "site"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(site, copy)
        text = (copy / file).read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"{file} has no {old}")
        (copy / file).write_text(text.replace(old, new), encoding="utf-8")
        found = look(copy)
        if not any(says in w for w in found):
            missed.append(f'not found: "{says}" among {found}')
    return missed


def pictures(browser, site, folder, pages):
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages or PAGES:
        for width in WIDTHS:
            for dark in (False, True):
                loaded(browser, site / page, width, dark)
                png = browser.call("Page.captureScreenshot", format="png")["data"]
                file = folder / f"{page.removesuffix('.html')}-{width}-{'dark' if dark else 'light'}.png"
                file.write_bytes(base64.b64decode(png))
                print(file)


def main():
    chromium, root, site, *more = sys.argv[1:]
    root, site = pathlib.Path(root).resolve(), pathlib.Path(site).resolve()
    wrong = [] if more and site.is_dir() else built(root, site)
    with tempfile.TemporaryDirectory(prefix="holdfast-site-") as folder, Browser(chromium) as browser:
        if more[:1] == ["--pictures"]:
            return pictures(browser, site, pathlib.Path(more[1]), more[2:])
        if more[:1] == ["--selftest"]:
            wrong += selftest(browser, site, pathlib.Path(folder))
        else:
            wrong += broken_links(site) + without_pages(site, root) + seen(browser, site)
    print(*wrong, f"{len(wrong)} faults", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
