"""docs/json.md: its fields are those that the command writes, and the other way round."""
import glob
import json
import os
import re

import support
from support import CliTest

ROOT = os.path.join(support.HERE, "..", "..")
# A boost::json object's keys, in the ways that the command's source writes them.
KEYS = re.compile(r'\{"(\w+)",|\b(?:o|one|facts|all|options|more)\["(\w+)"\]|"(\w+_ms)"')


def sections():
    """Fields by section; of the events, by event."""
    with open(os.path.join(ROOT, "docs", "json.md")) as f:
        parts = re.split(r"(?m)^##+ (.*)$", f.read())
    fields = {}
    for title, text in zip(parts[1::2], parts[2::2]):
        rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
        if title.startswith("Events"):
            events = {re.findall(r"`(\w+)`", r[1])[0]: set(re.findall(r"`(\w+)`", r[2])) for r in rows}
        else:
            fields[title] = {name for r in rows for name in re.findall(r"`(\w+)`", r[1])}
    return fields, events


def sources():
    for path in [p for part in ("cli", "core/json") for p in glob.glob(os.path.join(ROOT, part, "*.cpp"))]:
        with open(path) as f:
            text = f.read()
        if "json" in text and not path.endswith(("main.cpp", "run.cpp", "usage_error.cpp")):
            yield text


class Json(CliTest):
    def setUp(self):
        super().setUp()
        self.fields, self.events = sections()
        self.seen = {title: set() for title in self.fields}

    def look(self, title, o):
        self.assertEqual(set(o) - self.fields[title], set(), title)
        self.seen[title] |= set(o)
        for key in ("holders", "waiters") if title != "holdfast.list/1" else ("holders",):
            for one in o.get(key, []):
                self.look("holder", one)
        if "holder" in o:
            self.look("holder", o["holder"])
        for key, inner in (("nodes", "node"), ("findings", "finding")):
            for one in o.get(key, []):
                self.look(inner, one)
        if title == "holdfast.backends/1":
            for one in o["backends"]:
                self.look("backend", one)
        if "last_break" in o:
            self.look("break", o["last_break"])

    def ask(self, *args, **more):
        out = self.holdfast("--json", *args, **more).out
        self.assertTrue(out, args)
        for line in out.splitlines():
            o = json.loads(line)
            self.look(o["schema"], o)

    def test_every_object_has_the_fields_of_the_page(self):
        config = self.path("c.toml")
        with open(config, "w") as f:
            f.write(f'[backends.a]\nurl = "{self.url}"\n')
        self.hold("job", "--label", "nightly")
        self.ask("inspect", "job")
        self.ask("inspect", "free")
        self.ask("list", "-l")
        self.ask("list")
        self.ask("ask", "job")
        self.ask("break", "--force", "--if-token", "1", "job")
        self.ask("break", "--force", "job")
        self.ask("inspect", "job")
        self.ask("leader", "nobody")
        self.until_running(self.start("elect", "--value", "x", "led", "--", "sleep", "1000"))
        self.ask("leader", "led")
        self.ask("backends")
        self.ask("backends", url=None)
        self.ask("doctor", "--accept", "sqlite.version")
        self.ask("config", "show")
        self.ask("config", "check", config)
        checked = self.holdfast("run", "c", "--", support.CLI, "--json", "check").out
        self.look("holdfast.check/1", json.loads(checked))
        # What needs a loss, a look again and again, or another backend.
        rare = {"limit", "closed_for_ms", "nodes", "server", "time", "error", "renewed_within_ms", "not_renewed_for_ms", "where",
                "consequence", "remedy", "accepted"}
        for title, fields in self.fields.items():
            if title != "node":
                self.assertEqual(fields - self.seen[title] - rare, set(), title)

    def test_a_name_cannot_write_to_a_terminal_and_reads_back_as_it_is(self):
        name = "\u009b2J \u202e \x7f \u00fc"
        self.hold(name)
        for args in (("list",), ("inspect", name), ("ask", name)):
            out = self.holdfast("--json", *args).out
            self.assertIn(name, json.loads(out).values(), args)
            self.assertIn("\u00fc", out)
            for one in "\u009b\u202e\x7f":
                self.assertNotIn(one, out, args)

    def test_every_key_of_the_source_is_on_the_page_and_the_other_way_round(self):
        keys = {key for text in sources() for found in KEYS.findall(text) for key in found if key}
        page = set().union(*self.fields.values(), *self.events.values(),
                           {"event", "time", "names", "value", "default", "name", "link"})
        self.assertEqual(keys - page, set())
        self.assertEqual(page - keys, set())
        self.assertGreater(len(keys), 50)

    def test_every_event_of_the_source_is_on_the_page_and_the_other_way_round(self):
        text = "".join(sources())
        written = set(re.findall(r'\bwrite\(\s*"(\w+)"', text)) | {"dropped"}
        self.assertEqual(written, set(self.events))

    def test_the_events_of_a_run_have_the_fields_of_the_page(self):
        with open(self.path("events"), "w") as f:
            for args in (("job", "--", "true"), ("a", "b", "--", "false"), ("--ttl", "1s", "job", "--", "sleep", "0.8")):
                self.holdfast("run", "--status-fd", str(f.fileno()), *args, pass_fds=(f.fileno(),))
        with open(self.path("events")) as f:
            lines = [json.loads(line) for line in f]
        self.assertGreater(len(lines), 8)
        for line in lines:
            self.assertEqual(set(line) - {"event", "time", "name", "names"} - self.events[line["event"]], set(), line)


if __name__ == "__main__":
    support.main()
