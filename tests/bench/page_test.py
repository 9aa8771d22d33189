#!/usr/bin/env python3
"""The report's page in a real browser: as it is read, and with everything unfolded.

page_test.py CHROMIUM TEMPLATE RUN.json             at 1280 and 400 px, light and dark, and printed; of a whole run, and of parts
page_test.py CHROMIUM TEMPLATE RUN.json --selftest  each fault that the test looks for is put into the page, and has to be found
page_test.py CHROMIUM TEMPLATE RUN.json --pictures FOLDER  nothing is judged: PNG files, to look at
"""
import base64
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import Browser

# (width, dark, media); 718 px is a printed A4 page.
VIEWS = [(1280, False, "screen"), (1280, True, "screen"), (400, False, "screen"), (400, True, "screen"), (718, False, "print")]

WRONG = r"""
(() => {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  const name = (e) => `<${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''} ${(e.textContent || '').trim().slice(0, 40)}>`;
  // Only where it scrolls by itself may something be wider than the window.
  const scrolls = (e) => { for (; e; e = e.parentElement) if (e.classList && e.classList.contains('scroll')) return true; return false; };
  if (document.documentElement.scrollWidth > width) {
    const out = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > width + 0.5 && !scrolls(e));
    wrong.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width}: ${out.slice(-3).map(name).join(', ')}`);
  }
  for (const svg of document.querySelectorAll('svg.picture')) {
    if (svg.getBoundingClientRect().width === 0) continue;
    const box = svg.viewBox.baseVal;
    const texts = [...svg.querySelectorAll('text')].map((t) => [t, t.getBBox()]);
    const said = (t) => `${svg.getAttribute('aria-label')}: "${t.textContent}"`;
    for (const [t, b] of texts) {
      if (b.x < -1 || b.x + b.width > box.width + 1 || b.y < -2 || b.y + b.height > box.height + 2) wrong.push(`${said(t)} is cut off`);
    }
    texts.forEach(([t, a], i) => texts.slice(i + 1).forEach(([u, b]) => {
      const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      if (across > 2 && down > 5) wrong.push(`${said(t)} lies over "${u.textContent}"`);
    }));
  }
  for (const bad of ['undefined', 'NaN', '[object']) if (document.querySelector('main').innerText.includes(bad)) wrong.push(`the text has ${bad}`);
  for (const chart of document.querySelectorAll('.chart')) {
    if (chart.clientWidth > 0 && !chart.querySelector('svg path')) wrong.push(`${name(chart)} has nothing drawn`);
  }
  return wrong;
})()
"""
# What the first screen of a whole run has: a row for each backend.
WHOLE = """
[['#choice-table tbody tr', BACKENDS], ['#cost-safety svg.picture', 1], ['#pause svg.picture', 1], ['#findings li', 4], ['.claim', 30],
 ['.part', 25]].filter(([what, n]) => document.querySelectorAll(what).length < n).map(([what, n]) => `fewer than ${n} of ${what}`)
"""
UNFOLD = "for (const d of document.querySelectorAll('details')) d.open = true; new Promise((done) => setTimeout(done, 0))"


def page_of(template, report):
    data = json.dumps(report).replace("<", "\\u003c")
    return template.replace("/*HOLDFAST-BENCH-DATA*/", data)


# A row of each scenario that the kept run may lack: the page has a part for it.
OTHERS = [("C20", "default", "half-done work found by the next holder: crash", 0, "of 1 runs"), ("C21", "default", "reliability: mean rank", 0, ""),
          ("C23", "default", "grants per second", 50, "1/s"), ("C23", "all exclusive", "grants per second", 0, "1/s"),
          ("C23a", "read", "acquire + release, alone", 0, "us"), ("C25", "default", "time without a leader", 800, "ms"),
          ("C29", "default", "tasks done more than once", 2, "of 20 tasks"), ("C30", "default", "rank: complexity", 0, ""),
          ("C32", "default", "p50", 0, "us"), ("C32", "default", "p50", 10, "us")]
PARTS = """['#half-table', '#rank-table', '#readers-table', '#chart-readers', '#kinds-table', '#election-table', '#tasks-table',
 '#network-table', '#chart-network'].filter((what) => !document.querySelector(what)).map((what) => `no ${what}`)"""


def with_others(report):
    rows = [row for row in report["rows"] if row["scenario"] not in {scenario for scenario, *_ in OTHERS}]
    for scenario, variant, metric, x, unit in OTHERS:
        for backend in ("redis", "etcd"):
            value = 1000.0 * (1 + x)
            rows.append({**report["rows"][0], "scenario": scenario, "backend": backend, "variant": variant, "metric": metric, "x": x,
                         "value": value, "min": value, "max": value, "unit": unit, "note": "made up"})
    return {**report, "rows": rows}


def part_of(report, keep):
    rows = [row for row in report["rows"] if keep(row)]
    return {**report, "rows": rows}


def wrong_with(browser, url, views, has):
    wrong = []
    for width, dark, media in views:
        browser.open(url, width, 900, dark, media)
        view = f"{width} px, {'dark' if dark else 'light'}, {media}"
        found = browser.run(WRONG) + (browser.run(has) if has else [])
        browser.run(UNFOLD)
        found += [f"unfolded: {w}" for w in browser.run(WRONG)]
        wrong += [f"{view}: {w}" for w in found + [f"console: {e}" for e in browser.errors()]]
    return wrong


def pictures(browser, url, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for width, dark, media in VIEWS:
        browser.open(url, width, 900, dark, media)
        height = browser.run("document.documentElement.scrollHeight")
        for top in range(0, height, 1600):
            clip = {"x": 0, "y": top, "width": width, "height": min(1600, height - top), "scale": 1}
            png = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
            file = folder / f"{width}-{'dark' if dark else 'light'}-{media}-{top}.png"
            file.write_bytes(base64.b64decode(png))
            print(file)


def main():
    chromium, template_file, run_file, *more = sys.argv[1:]
    template = pathlib.Path(template_file).read_text()
    report = json.loads(pathlib.Path(run_file).read_text())
    if "== echarts/LICENSE" not in template:
        sys.exit("the template has no charts: build the bench's page with npm")
    whole = page_of(template, report)
    backends = len({row["backend"] for row in report["rows"]} - {"", "none"})
    has_whole = WHOLE.replace("BACKENDS", str(backends))
    failing = json.loads(json.dumps(part_of(report, lambda row: row["scenario"] in ("C1", "C3", "C12", "C18"))))
    failing["rows"][0] |= {"status": "violated", "note": "<b>a long reason</b> " + "without-a-place-to-break" * 20}
    pages = {"a whole run": (whole, VIEWS, has_whole),
             "with all scenarios": (page_of(template, with_others(report)), VIEWS[:3:2], PARTS),
             "C8 alone": (page_of(template, part_of(report, lambda row: row["scenario"] == "C8")), VIEWS[:3:2], ""),
             "a run that fails": (page_of(template, failing), VIEWS[:3:2], "")}
    faults = {}
    if more[:1] == ["--selftest"]:
        # Into a small page: a whole one takes seconds to unfold.
        at, small = "</main>", pages["C8 alone"][0]
        faults = {"console: said": small.replace(at, at + "<script>console.error('said')</script>"),
                  "thrown": small.replace(at, at + "<script>throw new Error('thrown')</script>"),
                  "px wide in a window": small.replace(at, "<div style='width:1400px'>wide</div>" + at),
                  "is cut off": small.replace(at, "<svg class='picture' width='200' height='40' viewBox='0 0 200 40'>"
                                              "<text x='190' y='20'>a long text</text></svg>" + at),
                  "lies over": small.replace(at, "<svg class='picture' width='200' height='40' viewBox='0 0 200 40'>"
                                             "<text x='20' y='20'>a text</text><text x='30' y='22'>another</text></svg>" + at),
                  "the text has undefined": small.replace(at, "<p>undefined ms</p>" + at),
                  "has nothing drawn": small.replace(at, "<div class='chart'></div>" + at),
                  f"fewer than {backends}": page_of(template, part_of(report, lambda row: row["backend"] != "redlock"))}
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="holdfast-page-") as folder, Browser(chromium) as browser:
        file = pathlib.Path(folder) / "page.html"

        def judged(page, views, has):
            file.write_text(page)
            return wrong_with(browser, file.as_uri(), views, has)

        if more[:1] == ["--pictures"]:
            file.write_text(whole)
            return pictures(browser, file.as_uri(), pathlib.Path(more[1]))
        if faults:
            for says, page in faults.items():
                found = judged(page, VIEWS[:1], has_whole if says.startswith("fewer") else "")
                if not any(says in w for w in found):
                    print(f'not found: "{says}" among {found}')
                    wrong += 1
        else:
            for name, page in pages.items():
                for w in judged(*page):
                    print(f"{name}: {w}")
                    wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
