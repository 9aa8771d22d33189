"""The manual page, --help and the completion speak of the same options."""
import json
import os
import pty
import re
import shutil
import subprocess
import threading

import support
from support import CliTest

ROOT = os.path.join(support.HERE, "..", "..", "cli")
SUBCOMMANDS = ("run", "elect", "check", "inspect", "leader", "list", "ask", "break", "backends",
               "doctor", "config", "schema", "demo")


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


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return f.read().splitlines()


def drain(descriptor):
    """A terminal that nobody reads would stop its program."""
    try:
        while os.read(descriptor, 4096):
            pass
    except OSError:
        pass


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

    def tools(self):
        """The environment of a completion, which waits a second for holdfast; a busy machine may exceed that:
        `timeout` is another one here, that notes the limit and waits for longer."""
        tools = self.path("tools")
        if not os.path.isdir(tools):
            os.mkdir(tools)
            with open(os.path.join(tools, "timeout"), "w") as f:
                f.write(f'#!/bin/sh\necho "$1" >>"{self.path("limits")}"; shift\nexec {shutil.which("timeout")} 60 "$@"\n')
            os.chmod(f.name, 0o755)
        return {**self.env, "HOLDFAST_URL": self.url,
                "PATH": ":".join((tools, os.path.dirname(support.CLI), os.environ["PATH"]))}

    def said(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.tools())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("limits")) as f:
            self.assertEqual(set(f.read().split()), {"1"})
        return done.stdout.splitlines()

    def complete(self, *words):
        """What bash offers for the last word."""
        script = ('COMP_LINE="${*}" COMP_POINT=${#COMP_LINE}; '
                  f'source "{ROOT}/completion/holdfast.bash"; COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); _holdfast; printf "%s\\n" "${COMPREPLY[@]}"')
        return self.said("bash", "--norc", "-c", script, "bash", *words)

    def complete_in_fish(self, line):
        """{candidate: its description}"""
        said = self.said("fish", "--no-config", "-c", f'source "{ROOT}/completion/holdfast.fish"; complete -C $argv[1]', line)
        return dict((line + "\t").split("\t")[:2] for line in said)

    def complete_in_zsh(self, *lines):
        """What TAB makes of each line, in a terminal."""
        lines_file, ready = self.path("lines"), self.path("ready")
        for old in (lines_file, ready):
            if os.path.exists(old):
                os.remove(old)
        setup = (f'PS1= fpath=("{ROOT}/completion" $fpath); autoload -U compinit; compinit -u -D; unsetopt beep; '
                 f'keep() {{ print -r -- "$BUFFER" >>"{lines_file}"; BUFFER= }}; zle -N keep; bindkey "^X" keep; '
                 f'zle-line-init() {{ : >"{ready}" }}; zle -N zle-line-init\n')
        master, slave = pty.openpty()
        with subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env={**self.tools(), "TERM": "dumb"},
                              start_new_session=True) as shell:
            os.close(slave)
            reader = threading.Thread(target=drain, args=(master,))
            reader.start()
            os.write(master, setup.encode())
            support.until(lambda: os.path.exists(ready), "zsh reads lines")
            for count, line in enumerate(lines, 1):
                os.write(master, line.encode() + b"\t\x18")
                support.until(lambda wanted=count: len(lines_of(lines_file)) == wanted, f"zsh completes {line}", 60)
            shell.kill()
        os.close(master)
        reader.join()
        return lines_of(lines_file)

    def test_completion_never_runs_what_a_name_says(self):
        """A name comes from the server, from whoever may take a lock there."""
        names = [f"job$(touch {self.path('ran')})", f"job`touch {self.path('ran')}`",
                 f"job;touch {self.path('ran')}", "job *", "job'", "job$HOME"]
        for name in names:
            self.hold(name)
        self.hold("job\n")
        self.hold('job"')
        offered = self.complete("holdfast", "inspect", "job")
        self.assertFalse(os.path.exists(self.path("ran")))
        # What is inserted is one word, and the name itself; names that are shown escaped are left out.
        for word in offered:
            done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True)
            self.assertIn(done.stdout, names)
        self.assertEqual(len(offered), len(names), offered)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.complete("holdfast", "inspect", '"job'), [""])

    def test_completion_of_backends(self):
        path = self.path("holdfast.toml")
        with open(path, "w") as f:
            f.write(f'[backends.better]\nurl = "{self.url}"\n[backends.good]\nurl = "{self.url}"\n')
        self.env["HOLDFAST_CONFIG"] = path
        self.assertEqual(self.complete("holdfast", "--backend", ""), ["better", "good"])
        self.assertEqual(self.complete("holdfast", "--backend", "g"), ["good"])

    def test_completion_asks_the_backend_that_the_options_name(self):
        self.hold("here")
        other = "sqlite:" + self.path("other.db")
        self.until_running(self.start("run", "elsewhere", "--", "sleep", "1000", url=other))
        path = self.path("holdfast.toml")
        with open(path, "w") as f:
            f.write(f'[backends.other]\nurl = "{other}"\n')
        self.assertEqual(self.complete("holdfast", "inspect", ""), ["here"])
        # As readline divides "sqlite:/..." and "--url=sqlite:/...".
        url = other.partition(":")
        for words in (("--url", *url), ("--url", "=", *url), ("--url=" + other,),
                      ("--config", "=", path, "--backend", "=", "other"), ("--config", path, "--backend=other",)):
            self.assertEqual(self.complete("holdfast", *words, "inspect", ""), ["elsewhere"], words)

    def test_completion_of_tables(self):
        named = self.holdfast("schema", url=None)
        self.assertEqual((named.code, named.err), (0, ""))
        self.assertIn("sqlite", named.out.split())
        for backend in json.loads(self.holdfast("--json", "backends", url=None).out)["backends"]:
            has_tables = self.holdfast("schema", backend["name"], url=None).code == 0
            self.assertEqual(backend["name"] in named.out.split(), has_tables, backend)
        offered = [w for w in self.complete("holdfast", "schema", "") if not w.startswith("-")]
        self.assertEqual(sorted(offered), sorted(named.out.split()))

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
        self.assertIn("SIGTERM", self.complete("holdfast", "run", "--on-ask", "SIGT"))
        self.assertEqual(self.complete("holdfast", "demo", "over"), ["oversell"])
        self.assertEqual(self.complete("holdfast", "config", "sh"), ["show"])
        self.assertEqual(self.complete("holdfast", "doctor", "--accept", ""), [""])
        self.assertEqual(self.complete("holdfast", "config", "check", ROOT + "/completion/holdfast.b"),
                         [ROOT + "/completion/holdfast.bash"])
        self.assertIn("true", self.complete("holdfast", "run", "a", "--", "tru"))

    def test_completion_in_fish(self):
        for sub in SUBCOMMANDS:
            offered = self.complete_in_fish(f"holdfast {sub} --")
            self.assertEqual(set(offered), set(self.complete("holdfast", sub, "--")), sub)
            self.assertNotIn("", offered.values())
        self.assertEqual(self.complete_in_fish("holdfast ins"), {"inspect": "Show the holders and the waiters of a lock"})
        names = ["job one", f"job$(touch {self.path('ran')})"]
        for name in names:
            self.hold(name)
        self.assertEqual(set(self.complete_in_fish("holdfast inspect job")), set(names))
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(list(self.complete_in_fish("holdfast --color=al")), ["--color=always"])
        file = ROOT + "/completion/holdfast."
        self.assertEqual(set(self.complete_in_fish("holdfast --config=" + file)),
                         {"--config=" + file + "bash", "--config=" + file + "fish"})
        self.assertIn("--help", self.complete_in_fish("holdfast run a -- holdfast inspect --he"))

    def test_completion_in_zsh(self):
        self.hold("nightly")
        self.hold("job *")
        self.hold(f"one$(touch {self.path('ran')})")
        file = ROOT + "/completion/holdfast.b"
        wanted = {"holdfast ins": "holdfast inspect ", "holdfast inspect nig": "holdfast inspect nightly ",
                  "holdfast inspect job": "holdfast inspect job\\ \\* ", "holdfast run --nonb": "holdfast run --nonblock ",
                  "holdfast --color=al": "holdfast --color=always ", "holdfast --config=" + file: f"holdfast --config={file}ash ",
                  "holdfast --config " + file: f"holdfast --config {file}ash ",
                  "holdfast run a -- holdfast insp": "holdfast run a -- holdfast inspect ",
                  "holdfast inspect one": f"holdfast inspect one\\$\\(touch\\ {self.path('ran')}\\) "}
        self.assertEqual(self.complete_in_zsh(*wanted), list(wanted.values()))
        self.assertFalse(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    support.main()
