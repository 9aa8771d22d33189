"""What the command line takes and refuses: empty values, numbers, contradictions."""
import os
import re

import support
from support import CliTest
from test_manual import SUBCOMMANDS

MAY_BE_EMPTY = {"--label", "--value"}
SOME_COMMAND = {"run": ["job", "--", "touch", "RAN"], "elect": ["job", "--", "touch", "RAN"],
                "break": ["--force", "job"], "ask": ["job"], "inspect": ["job"], "leader": ["job"]}


def options_with_values(help_text):
    """Of lines such as "  -w,--wait,--timeout TIME   Wait ...": all spellings."""
    for line in help_text.splitlines():
        found = re.match(r"  (-\S+) [A-Z]+\b", line)
        if found:
            yield from found[1].split(",")


class Empty(CliTest):
    def command(self, sub):
        return [self.path("ran") if w == "RAN" else w for w in SOME_COMMAND.get(sub, [])]

    def refused(self, *args, env=None, url=None):
        done = self.holdfast(*args, url=url, env=env)
        self.assertEqual(done.code, 64, (args, done))
        self.assertEqual(done.out, "")
        self.assertFalse(os.path.exists(self.path("ran")), args)

    def test_an_option_that_is_given_and_empty_is_refused(self):
        tried = 0
        for sub in SUBCOMMANDS:
            if sub == "config":
                continue
            for option in options_with_values(self.holdfast(sub, "--help", url=None).out):
                if option in MAY_BE_EMPTY:
                    continue
                self.refused(sub, option, "", *self.command(sub), url=self.url)
                if option.startswith("--"):
                    self.refused(sub, option + "=", *self.command(sub), url=self.url)
                tried += 1
        self.assertGreater(tried, 30)
        for option in ("--url", "--backend", "--config", "--color"):
            self.refused(option, "", "run", *self.command("run"), env={"HOLDFAST_URL": self.url})
            self.refused(option + "=", "run", *self.command("run"), env={"HOLDFAST_URL": self.url})

    def test_an_argument_that_is_given_and_empty_is_refused(self):
        for args in (("doctor", ""), ("config", "check", ""), ("config", "init", ""), ("schema", ""),
                     ("demo", ""), ("inspect", "--watch=", "job")):
            self.refused(*args, env={"HOLDFAST_URL": self.url})
        self.assertEqual(self.holdfast("run", "", "--", "true").code, 65)

    def test_a_label_a_value_and_a_prefix_may_be_empty(self):
        for option in ("--label", "--label="):
            words = [option] if option.endswith("=") else [option, ""]
            result = self.holdfast("run", *words, "job", "--", "printenv", "HOLDFAST_LOCK")
            self.assertEqual((result.code, result.out), (0, "job\n"), result)
        self.assertEqual(self.holdfast("elect", "--value", "", "job", "--", "true").code, 0)
        self.assertEqual(self.holdfast("list", "").code, 0)

    def test_a_token_that_was_not_found_out_breaks_nobody(self):
        holder = self.hold("job")
        for sub in ("break", "ask"):
            more = ["--force"] if sub == "break" else []
            for value in ("", "0", "0x10", "-1", "+5", " 5", "5 ", "null", "1e3"):
                self.refused(sub, *more, "--if-token", value, "job", url=self.url)
            self.refused(sub, *more, "--owner", "", "job", url=self.url)
        self.assertIsNone(holder.poll())
        self.assertFalse(self.inspect("job")["holders"][0]["revoked"])


class Values(CliTest):
    def test_numbers_are_decimal_and_in_their_range(self):
        run = ("job", "--", "touch", self.path("ran"))
        for args in (("list", "--limit", "-1"), ("list", "--limit", "0"), ("list", "--limit", "0x10"),
                     ("run", "-E", "abc", *run), ("run", "-E", "256", *run), ("run", "-E", "-1", *run),
                     ("run", "--of", "0", *run), ("run", "--of", "65536", *run),
                     ("run", "--of", "3", "--permits", "4", *run), ("run", "--of", "0x3", *run),
                     ("run", "--status-fd", "-1", *run), ("demo", "--seed", "0x1", "counter")):
            result = self.holdfast(*args)
            self.assertEqual(result.code, 64, (args, result))
            self.assertIn("takes a decimal number from ", result.err)
        self.assertFalse(os.path.exists(self.path("ran")))
        # Not octal, as the C library would read it.
        held = self.hold("job")
        result = self.holdfast("run", "-n", "-E", "010", "job", "--", "true")
        self.assertEqual(result.code, 10, result)
        self.assertIsNone(held.poll())

    def test_what_is_wrong_is_said_in_sentences(self):
        for args, words in {
                ("run", "--", "true"): "missing NAME\n",
                ("run", "-s", "-x", "job", "--", "true"): "--shared and --exclusive exclude each other\n",
                ("run", "job", "--label"): "--label needs a value\n",
                ("--url", "a", "--url", "b", "list"): "--url is given more than once\n",
                ("--color", "no", "list"): '--color takes auto, always or never, not "no"\n',
                ("demo", "tour"): 'SCENE takes counter, oversell, queue or takeover, not "tour"\n',
                ("config",): "missing command; choose one of: check, show, init\n",
                ("--local", "--url", "sqlite:x", "list"): "--url and --local exclude each other\n"}.items():
            result = self.holdfast(*args, url=None)
            self.assertEqual(result.code, 64, result)
            self.assertTrue(result.err.startswith("holdfast: " + words), (args, result))
        for sub in SUBCOMMANDS:
            self.assertNotIn("Excludes", self.holdfast(sub, "--help", url=None).out)

    def test_a_name_in_brackets_is_one_name(self):
        for name in ("[a,b]", "[]", "{}", "%%"):
            result = self.holdfast("run", name, "--", "printenv", "HOLDFAST_LOCK")
            self.assertEqual((result.code, result.out), (0, name + "\n"), result)

    def test_the_usage_of_elect_shows_the_command(self):
        for sub in ("run", "elect"):
            self.assertIn(f"holdfast {sub} [OPTIONS] NAME{'...' if sub == 'run' else ''} -- COMMAND",
                          self.holdfast(sub, "--help", url=None).out)


if __name__ == "__main__":
    support.main()
