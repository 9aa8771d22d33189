"""The manual page, --help and the completion speak of the same options."""
import os
import re
import subprocess

import support
from support import CliTest

ROOT = os.path.join(support.HERE, "..", "..", "cli")
SUBCOMMANDS = ("run", "check", "inspect", "list", "break", "backends", "config", "schema",
               "demo")


def options_of(text):
    """Options at the beginning of help lines: "  -n,--nonblock TEXT"."""
    found = set()
    for line in text.splitlines():
        if line.startswith("  -"):
            found.update(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", line.split("  ")[1]
                                    .split(" Excludes:")[0]))
    return found - {"-h", "--help"}


def manual():
    with open(os.path.join(ROOT, "holdfast.1")) as f:
        return f.read()


def manual_options(section):
    """Options in the headings (.TP) of one section, with roff's escapes taken out."""
    found = set()
    lines = section.splitlines()
    for heading, line in zip(lines, lines[1:]):
        if heading == ".TP":
            plain = re.sub(r"\\f.", "", line).replace("\\-", "-")
            found.update(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", plain))
    return found - {"-h", "--help"}


class Manual(CliTest):
    def sections(self):
        parts = re.split(r"(?m)^\.(?:SS|SH) (.*)$", manual())
        return dict(zip(parts[1::2], parts[2::2]))

    def test_every_option_is_in_the_manual_and_vice_versa(self):
        sections = self.sections()
        for sub in SUBCOMMANDS:
            helped = options_of(self.holdfast(sub, "--help", url=None).out)
            self.assertEqual(helped, manual_options(sections[sub]), sub)
        helped = options_of(self.holdfast("--help", url=None).out)
        self.assertEqual(helped, manual_options(sections["GLOBAL OPTIONS"]))
        self.assertGreater(len(helped), 8)

    def test_every_exit_code_of_run_is_in_the_manual(self):
        helped = set(re.findall(r"\b(\d{2,3})\b", self.holdfast("run", "--help", url=None).out
                                .split("Exit codes:")[1].split("The command sees")[0])) - {"128"}
        self.assertEqual(helped - set(re.findall(r"\b\d{2,3}\b", self.sections()["EXIT STATUS"])),
                         set())
        self.assertIn("76", helped)

    def test_roff_is_clean(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z",
                               os.path.join(ROOT, "holdfast.1")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def complete(self, *words):
        script = (f'source "{ROOT}/completion/holdfast.bash"; COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); _holdfast; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words],
                              capture_output=True, text=True, env={
                                  **self.env, "PATH": os.path.dirname(support.CLI) + ":"
                                  + os.environ["PATH"], "HOLDFAST_URL": self.url})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_completion(self):
        self.assertEqual(set(SUBCOMMANDS) - set(self.complete("holdfast", "")), set())
        self.assertEqual(self.complete("holdfast", "ins"), ["inspect"])
        for sub in SUBCOMMANDS:
            offered = self.complete("holdfast", sub, "--")
            unknown = set(offered) - {"--", "--help"} - options_of(
                self.holdfast(sub, "--help", url=None).out) - options_of(
                self.holdfast("--help", url=None).out)
            self.assertEqual(unknown, set(), sub)
        self.hold("nightly")
        self.assertEqual(self.complete("holdfast", "inspect", "nig"), ["nightly"])
        self.assertIn("auto", self.complete("holdfast", "--color", ""))


if __name__ == "__main__":
    support.main()
