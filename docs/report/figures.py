#!/usr/bin/env python3
"""The README's figures and picture, made from the kept reference run beside this file.

usage: figures.py           compares; exit 1 and the difference when they are not what the run says
       figures.py --write   writes them anew

A new reference run, with its page, which has to be of the same run:
  bench/run --json docs/report/reference.json --html docs/report/reference.html && docs/report/figures.py --write
The page alone, anew: bench/run --page docs/report/reference.json --html docs/report/reference.html
README.md, cost-safety.svg and pause.svg beside this file: node bench/report/markdown.mjs docs/report/reference.json docs/report
"""
import difflib
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent.parent / "README.md"
PAGE = HERE / "reference.html"
PICTURE = HERE / "cost.svg"
# Which lock for which need: the report's page has the same table.
CHOICES = sorted(({"backend": file.parent.name, **choice}
                  for file in (HERE.parent.parent / "backends").rglob("backend.json")
                  for choice in json.loads(file.read_text())["choices"]), key=lambda choice: choice["rank"])
BEGIN, END = "<!-- figures: docs/report/figures.py --write -->", "<!-- end of figures -->"

# (what the reader is told, backend, variant); rows that the run lacks are an error, not a gap.
COST = [("memory", "memory", "default"),
        ("redis, bare hiredis, two commands", "redis", "floor: plain pair"),
        ("redis, mode=plain", "redis", "plain"),
        ("redis", "redis", "default"),
        ("redis, every write on disk", "redis", "durable"),
        ("redis, Sentinels, every write on disk", "redis-sentinel", "default"),
        ("redis, a cluster, every write on disk", "redis-cluster", "default"),
        ("sqlite, bare sqlite3, two transactions", "sqlite", "floor: bare sqlite3"),
        ("sqlite", "sqlite", "default"),
        ("postgresql", "postgresql", "default"),
        ("mysql (MariaDB)", "mysql", "default"),
        ("redlock, five nodes", "redlock", "default"),
        ("zookeeper", "zookeeper", "default"),
        ("etcd", "etcd", "default")]
HAND_OFF = [("redis", "redis", "default"), ("redis, wait=poll", "redis", "poll"),
            ("redis, all notified", "redis", "broadcast"), ("redis, Sentinels", "redis-sentinel", "default"),
            ("redis, a cluster", "redis-cluster", "default"), ("sqlite", "sqlite", "default"),
            ("postgresql", "postgresql", "default"), ("mysql (MariaDB)", "mysql", "default"),
            ("redlock, five nodes", "redlock", "default"), ("zookeeper", "zookeeper", "default"),
            ("etcd", "etcd", "default")]


class Run:
    def __init__(self, path):
        self.report = json.loads(path.read_text())
        if self.report["partial"] or self.report["environment"]["effort"] == "quick":
            sys.exit(f"{path.name} is not a whole run of the normal length")

    def value(self, scenario, backend, variant, metric, x=None):
        for row in self.report["rows"]:
            if (row["scenario"], row["backend"], row["variant"], row["metric"]) == \
                    (scenario, backend, variant, metric) and x in (None, row["x"]):
                return row["value"]
        sys.exit(f"the reference run lacks {scenario} {backend} {variant} {metric} {x}")

    def target(self, what):
        for target in self.report["targets"]:
            if target["what"].startswith(what):
                return target["value"]
        sys.exit(f"the reference run lacks the target {what}")


def microseconds(us):
    if us < 10:
        return f"{us:.1f} us"
    return f"{us:.0f} us" if us < 1000 else f"{us / 1000:.1f} ms"


def plain(n):
    return f"{n:.1f}" if n < 10 else f"{n:.0f}"


def block(run):
    environment = run.report["environment"]

    def line(choice):
        scenario, variant, metric, x = choice["cost"]
        cost = microseconds(run.value(scenario, choice["backend"], variant, metric, x))
        return f"| {choice['need']} | {choice['take']} | {choice['two']} | {cost} | {choice['hand_off']} |"

    lines = [
        "| You need | Take | Two holders are possible when | Acquire + release | Waiters |",
        "|---|---|---|---|---|",
        *map(line, CHOICES),
        "",
        "In every row two holders are also possible after a pause of a holder, as described below. The times are medians on one machine:"
        " compare them with each",
        "other, not with your network. They come from [the report](docs/report/README.md) of"
        f" `bench/run{' --full' if environment['effort'] == 'full' else ''}` on {environment['date'][:10]}.",
    ]
    failed = [row for row in run.report["rows"] if row["status"] != "ok"]
    if failed:
        lines += ["Do not rely on a load that failed in that run: " + ", ".join(sorted({row["backend"] for row in failed})) + "."]
    return "\n".join(lines) + "\n"


def panel(title, note, bars, top, log):
    """A list of SVG elements: one horizontal bar per (label, value, text)."""
    left, width, step = 300, 380, 26
    low = min(value for _, value, _ in bars) / 2 if log else 0
    high = max(value for _, value, _ in bars)
    out = [f'<text x="20" y="{top}" class="title">{escape(title)}</text>',
           f'<text x="20" y="{top + 17}" class="note">{escape(note)}</text>']
    for i, (label, value, text) in enumerate(bars):
        y = top + 30 + i * step
        part = (math.log(value / low) / math.log(high / low)) if log else value / high
        length = max(2.0, part * width)
        shade = "floor" if "bare" in label else "bar"
        out.append(f'<text x="{left - 10}" y="{y + 14}" class="label">{escape(label)}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="18" rx="2" class="{shade}"/>')
        out.append(f'<text x="{left + length + 6:.1f}" y="{y + 14}" class="value">{escape(text)}</text>')
    return out, top + 30 + len(bars) * step


def picture(run):
    cost = [(label, run.value("C1", backend, variant, "p50", 1.0)) for label, backend, variant in COST]
    first, bottom = panel("Acquire and release, nobody else wants the lock",
                          "median, one blocking caller; the scale is logarithmic",
                          [(label, v, microseconds(v)) for label, v in cost], 30, True)
    hand_off = [(label, run.value("C3", backend, variant, "requests per hand-off", 100.0))
                for label, backend, variant in HAND_OFF]
    second, bottom = panel("Requests per hand-off, 100 waiters", "sent by all clients together",
                           [(label, v, plain(v)) for label, v in hand_off], bottom + 36, False)
    style = ("text{font-family:system-ui,sans-serif;font-size:13px;fill:#1f2933}"
             ".title{font-size:15px;font-weight:600}.note{fill:#52606d;font-size:12px}"
             ".label{text-anchor:end}.bar{fill:#2b6cb0}.floor{fill:#a0aec0}")
    height = bottom + 12
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" width="780" '
                      f'height="{height}" role="img">', f"<style>{style}</style>",
                      f'<rect width="780" height="{height}" fill="#ffffff"/>', *first, *second,
                      "</svg>", ""])


def forgotten(run):
    """The backends of the run that the table or the picture lacks."""
    ran = {row["backend"] for row in run.report["rows"] if row["scenario"] == "C1" and row["variant"] == "default"}
    named = {choice["backend"] for choice in CHOICES} | {"memory"}  # which is no choice for a user
    return sorted(ran - named | ran - {backend for _, backend, _ in COST})


def page_of_another_run():
    """The page carries its run; in a script element, so that no '<' is written as such."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', PAGE.read_text(), re.S)
    return not data or json.loads(data[1]) != json.loads((HERE / "reference.json").read_text())


def main():
    run = Run(HERE / "reference.json")
    readme = README.read_text()
    if forgotten(run):
        sys.exit(f"no row, or no bar in the picture, for {', '.join(forgotten(run))}")
    if BEGIN not in readme or END not in readme:
        sys.exit("README.md has lost the markers of the figures")
    head, rest = readme.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    wanted = {README: head + BEGIN + "\n" + block(run) + END + tail, PICTURE: picture(run)}
    wrong = 0
    for path, text in wanted.items():
        now = path.read_text() if path.exists() else ""
        if now == text:
            continue
        if sys.argv[1:] == ["--write"]:
            path.write_text(text)
            continue
        wrong += 1
        sys.stdout.writelines(difflib.unified_diff(now.splitlines(True), text.splitlines(True),
                                                   path.name, "the reference run"))
    if page_of_another_run():
        sys.exit(f"{PAGE.name} is not the page of reference.json: see the head of this program")
    if wrong:
        sys.exit("not what the reference run says; docs/report/figures.py --write writes it anew")


if __name__ == "__main__":
    main()
