#!/usr/bin/env python3
"""metrics.py HOLDFAST TREE [--selftest]: what `run --metrics` writes is what the pages name, and the other way round.

The command's own file is read by an OpenMetrics parser and by one of Prometheus' older text format. Every metric, label
and reason that docs/operations.md ("Counters"), the dashboard and the alert rules name has to be in it, and every metric
and reason in it has to be in docs/operations.md. --selftest breaks each of them, and wants each complaint.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as openmetrics

PAGE, DASHBOARD, RULES = "docs/operations.md", "docs/monitoring/dashboard.json", "docs/monitoring/alerts.yml"
NAME = re.compile(r"\bholdfast_\w+")
# Labels that Prometheus adds to every series.
ADDED = {"instance", "job"}


def exported(holdfast):
    """The text of a run that has done a little of everything."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "page.prom")
        subprocess.run([holdfast, "--url", "memory:", "run", "--metrics", file, "x", "--", "true"], check=True)
        return file.read_text(encoding="utf-8")


class Text:
    def __init__(self, text):
        self.families = list(openmetrics.text_string_to_metric_families(text))
        samples = [s for f in self.families for s in f.samples]
        self.series = {s.name for s in samples}
        self.labels = {label for s in samples for label in s.labels}
        self.reasons = {s.labels["reason"] for s in samples if "reason" in s.labels}
        self.values = {(s.name, *sorted(s.labels.items())): float(s.value) for s in samples}
        # As pages name them: a histogram by its family, all others by their one series.
        self.documented = {f.name if f.type == "histogram" else f.samples[0].name for f in self.families}
        self.known = self.series | self.documented

    def complaints(self, text):
        wrong = [f"{f.name}: no {what}" for f in self.families
                 for what, value in (("help", f.documentation), ("type", f.type != "unknown")) if not value]
        seen = {(s.name, *sorted(s.labels.items())): float(s.value)
                for f in older.text_string_to_metric_families(text) for s in f.samples}
        if seen != self.values:
            wrong.append("the two parsers do not read the same")
        if self.values.get(("holdfast_acquired_total", ("backend", "memory"), ("run", "page"))) != 1:
            wrong.append("the run has acquired no lock")
        return wrong


def page_complaints(text, page):
    section = page.split("\n## Counters\n")[1].split("\n## ")[0]
    named = set(NAME.findall(section))
    words = set(re.findall(r"`(\w+)`", section))
    return ([f"{PAGE}: there is no metric {n}" for n in named - text.known]
            + [f"{PAGE}: {n} is missing" for n in text.documented - named]
            + [f"{PAGE}: the reason {r} is missing" for r in text.reasons - words])


def query_complaints(text, where, queries):
    """Names, labels and reasons in PromQL."""
    wrong = [] if queries else [f"{where}: has no query"]
    for query in queries:
        wrong += [f"{where}: there is no series {n}: {query}" for n in set(NAME.findall(query)) - text.series]
        labels = set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!=)", query))
        for group in re.findall(r"\b(?:by|without)\s*\(([^)]*)\)", query):
            labels.update(re.findall(r"\w+", group))
        labels.update(re.findall(r"label_values\(\w+,\s*(\w+)\)", query))
        wrong += [f"{where}: there is no label {n}: {query}" for n in labels - text.labels - ADDED]
        for value in re.findall(r'\breason\s*(?:=|!=)~?\s*"([^"]*)"', query):
            wrong += [f"{where}: there is no reason {r}: {query}" for r in set(value.split("|")) - text.reasons]
        if not NAME.search(query):
            wrong.append(f"{where}: asks for nothing of Holdfast's: {query}")
    return wrong


def dashboard_complaints(text, source):
    board = json.loads(source)
    queries = [t["expr"] for p in board["panels"] for t in p["targets"]]
    queries += [v["definition"] for v in board["templating"]["list"] if v["type"] == "query"]
    wrong = query_complaints(text, DASHBOARD, queries)
    variables = {v["name"] for v in board["templating"]["list"]}
    used = {n for n in re.findall(r"\$\{?(\w+)", source) if not n.startswith("__")}
    wrong += [f"{DASHBOARD}: there is no variable {n}" for n in used - variables]
    ids = [p["id"] for p in board["panels"]]
    cells = [(x, y) for g in (p["gridPos"] for p in board["panels"])
             for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
    if len(set(ids)) != len(ids) or len(set(cells)) != len(cells) or max(x for x, _ in cells) > 23:
        wrong.append(f"{DASHBOARD}: two panels in one place, or with one id")
    return wrong


def rule_complaints(text, source):
    rules = [r for g in yaml.safe_load(source)["groups"] for r in g["rules"]]
    wrong = query_complaints(text, RULES, [r["expr"] for r in rules])
    for rule in rules:
        kept = re.findall(r"\bby\s*\(([^)]*)\)", rule["expr"])
        for used in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
            if used not in text.labels | ADDED or (kept and used not in kept[0]):
                wrong.append(f"{RULES}: {rule['alert']} has no label {used}")
    return wrong


def complaints(raw, sources):
    text = Text(raw)
    return (text.complaints(raw) + page_complaints(text, sources[PAGE])
            + dashboard_complaints(text, sources[DASHBOARD]) + rule_complaints(text, sources[RULES]))


def selftest(raw, sources):
    """Each way of breaking them, and the complaint that it has to bring about."""
    new = "# TYPE holdfast_new counter\n# HELP holdfast_new New.\nholdfast_new_total 0\n"
    broken = [
        ("text", "# HELP holdfast_held Leases held now.\n", "", "holdfast_held: no help"),
        ("text", "# TYPE holdfast_acquired", new + "# TYPE holdfast_acquired", "holdfast_new_total is missing"),
        ("text", 'reason="gone"', 'reason="new"', "the reason new is missing"),
        (PAGE, "holdfast_released_total", "holdfast_freed_total", "there is no metric holdfast_freed_total"),
        (PAGE, "holdfast_released_total", "that", "holdfast_released_total is missing"),
        (PAGE, "`gone`", "gone", "the reason gone is missing"),
        (DASHBOARD, "holdfast_wait_seconds_bucket", "holdfast_wait_seconds", "no series holdfast_wait_seconds:"),
        (DASHBOARD, "sum by (reason)", "sum by (cause)", "there is no label cause"),
        (DASHBOARD, "instance=~", "host=~", "there is no label host"),
        (DASHBOARD, "$backend", "$server", "there is no variable server"),
        (DASHBOARD, '"x": 6', '"x": 5', "two panels in one place"),
        (RULES, "holdfast_in_doubt_total", "holdfast_doubts_total", "there is no series holdfast_doubts_total"),
        (RULES, 'reason!="closed"', 'reason!="close"', "there is no reason close"),
        (RULES, "by (instance, backend, reason)", "by (instance, backend)", "HoldfastLeaseLost has no label reason"),
    ]
    failed = complaints(raw, sources)
    for where, old, other, words in broken:
        changed = {**sources, "text": raw}
        if old not in changed[where]:
            failed.append(f"{words}: nothing was broken")
            continue
        changed[where] = changed[where].replace(old, other)
        if not any(words in w for w in complaints(changed["text"], changed)):
            failed.append(f"{words}: broken, and nobody complains")
    for end in ("# EOF\n", '_bucket{'):
        try:
            Text(raw.replace(end, "", 1))
            failed.append(f"without {end!r} the text is read all the same")
        except ValueError:
            pass
    return failed


def main():
    holdfast, root = sys.argv[1], pathlib.Path(sys.argv[2])
    raw = exported(holdfast)
    sources = {name: (root / name).read_text(encoding="utf-8") for name in (PAGE, DASHBOARD, RULES)}
    wrong = selftest(raw, sources) if "--selftest" in sys.argv else complaints(raw, sources)
    print(*wrong, f"{len(Text(raw).families)} metrics, {len(wrong)} complaints", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
