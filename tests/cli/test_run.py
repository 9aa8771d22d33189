"""`holdfast run`: exit codes, environment, options, signals while waiting, secrets."""
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import support
from support import CLI, CliTest, until


class ExitCodes(CliTest):
    def test_the_commands_own(self):
        for code in (0, 1, 7, 64, 75, 255):
            result = self.holdfast("run", "job", "--", "sh", "-c", f"exit {code}")
            self.assertEqual(result.code, code, result)
            self.assertEqual(result.err.replace(
                'holdfast: the previous holder of "job" abandoned it: its work may be incomplete\n', ""), "")
        self.assert_free("job")

    def test_signals_are_128_plus_n(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            result = self.holdfast("run", "job", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(result.code, 128 + number, result)
        self.assert_free("job")

    def test_an_interrupted_command_is_an_interrupted_holdfast(self):
        """As the shell sees it; a command that handles the signal has ended by itself."""
        for number in (signal.SIGINT, signal.SIGQUIT):
            result = self.holdfast("run", "job", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(result.code, -number, result)
        result = self.holdfast("run", "job", "--", "sh", "-c", "trap 'exit 130' INT; kill -INT $$")
        self.assertEqual(result.code, 130, result)
        result = self.holdfast("run", "job", "--", "env", "--default-signal=INT", "sh", "-c",
                               "kill -INT $$",
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(result.code, 130, result)  # nohup's like: what is ignored stays ignored
        self.assert_free("job")

    def test_arguments_arrive_unchanged(self):
        words = ["a b", "", "*", "[x,y]", "--url", "-n", "--", "it's", "\n"]
        result = self.holdfast("run", "job", "--", "printf", "<%s>", *words)
        self.assertEqual(result.out, "".join(f"<{w}>" for w in words))

    def test_standard_input_and_output_pass_through(self):
        with open(self.path("in"), "w") as f:
            f.write("through\n")
        with open(self.path("in")) as f:
            result = self.holdfast("run", "job", "--", "cat", stdin=f)
        self.assertEqual((result.code, result.out), (0, "through\n"), result)

    def test_closed_standard_descriptors(self):
        result = self.holdfast("run", "job", "--", "sh", "-c", "exit 4",
                               preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(result.code, 4, result)

    def test_held_by_another(self):
        self.hold("job", "--label", "nightly report")
        for option in (["-n"], ["--nb"], ["--nonblock"], ["-w", "0"], ["-w", "0.1"],
                       ["--timeout", "100ms"]):
            result = self.holdfast("run", *option, "job", "--", "true")
            self.assertEqual(result.code, 75, result)
            self.assertIn('"job" is held by ', result.err)
            self.assertIn('"nightly report"', result.err)
            self.assertIn("-w 60", result.err)
        quiet = self.holdfast("-q", "run", "-n", "job", "--", "true")
        self.assertEqual((quiet.code, quiet.err), (75, ""))
        for code in ("0", "1", "255"):
            result = self.holdfast("run", "-n", "-E", code, "job", "--", "false")
            self.assertEqual(result.code, int(code), result)

    def test_what_is_offered_to_paste_is_one_word(self):
        """A name may hold what a shell would run."""
        for name, word in (("a/b-1", "a/b-1"), ("a $(id) b", "'a $(id) b'"), ("it's", "NAME")):
            self.hold(name)
            result = self.holdfast("run", "-n", name, "--", "true")
            self.assertIn(f"holdfast run -w 60 {word} -- ...\n", result.err)

    def test_a_missing_command_takes_no_lock(self):
        self.hold("job")
        # The lock is held: whoever asked for it would have to wait.
        os.mkdir(self.path("folder"))
        with open(self.path("plain"), "w") as f:
            f.write("text")
        for word, code in (("no-such-command", 127), (self.path("none"), 127),
                           (self.path("folder"), 126), (self.path("plain"), 126)):
            result = self.holdfast("run", "job", "--", word)
            self.assertEqual(result.code, code, result)
            self.assertIn("NOT acquired", result.err)

    def test_a_script_without_interpreter_line_runs(self):
        script = self.path("script")
        with open(script, "w") as f:
            f.write("exit 9\n")
        os.chmod(script, 0o755)
        self.assertEqual(self.holdfast("run", "job", "--", script).code, 9)

    def test_an_interpreter_that_is_missing(self):
        """Found before the lock is asked for, which is held here: to ask would be to wait."""
        self.hold("job")

        def script(name, first_line):
            with open(self.path(name), "w") as f:
                f.write(first_line + "\n")
            os.chmod(self.path(name), 0o755)
            return self.path(name)
        plain = self.path("plain")
        with open(plain, "w") as f:
            f.write("text")
        missing = script("one", "#! /no/such/interpreter -x")
        with open(sys.executable, "rb") as f:
            program = f.read().replace(b"/lib64/ld-", b"/lib65/ld-").replace(b"/lib/ld-", b"/lib./ld-")
        with open(self.path("program"), "wb") as f:
            f.write(program)
        os.chmod(self.path("program"), 0o755)
        for path, code, word in ((missing, 127, "/no/such/interpreter"),
                                 (script("two", "#!" + missing), 127, "/no/such/interpreter"),
                                 (script("three", "#!" + plain), 126, plain),
                                 (self.path("program"), 127, "/ld-")):
            result = self.holdfast("run", "job", "--", path)
            self.assertEqual(result.code, code, result)
            self.assertIn("its interpreter", result.err)
            self.assertIn(word, result.err)
            self.assertIn("NOT acquired", result.err)

    def test_what_only_the_kernel_finds(self):
        """Then the lock was taken, and it is said."""
        script = self.path("script")
        with open(script, "w") as f:
            f.write("#!" + script + "\n")
        os.chmod(script, 0o755)
        result = self.holdfast("run", "job", "--", script)
        self.assertEqual(result.code, 126, result)
        self.assertIn("acquired and released; nothing ran", result.err)
        self.assertEqual(self.holdfast("run", "job", "--", "sh", "-c", "echo $HOLDFAST_PREVIOUS").out,
                         "released\n")


class Usage(CliTest):
    def refused(self, *args, words=(), url=""):
        result = self.holdfast(*args, url=url)
        self.assertEqual(result.code, 64, result)
        for word in words:
            self.assertIn(word, result.err)
        self.assertTrue(result.err.startswith("holdfast: "), result)

    def test_mistakes_are_64_and_name_the_nearest(self):
        self.refused(words=["run, elect, check, inspect"])
        self.refused("rnu", "x", words=['"rnu"', "did you mean run?"])
        self.refused("run", "--tll", "5s", "x", "--", "true", words=["did you mean --ttl?"])
        self.refused("run", "x", words=["missing command to run"])
        self.refused("run", "x", "true", words=["after --"])
        self.refused("run", "--", "true", words=["NAME"])
        self.refused("run", "-w", "soon", "x", "--", "true", words=["--wait", '"soon"'])
        self.refused("run", "-n", "-w", "5", "x", "--", "true", words=["--wait"])
        self.refused("run", "-E", "256", "x", "--", "true", words=["0 to 255"])
        self.refused("run", "-E", "many", "x", "--", "true")
        self.refused("run", "--ttl", "10ms", "x", "--", "true", words=["100ms to 24h"])
        self.refused("run", "--max-hold", "0", "x", "--", "true", words=["--max-hold"])
        self.refused("run", "--ttl", "2s", "--grace", "1s", "x", "--", "true", words=["half the ttl"])
        self.refused("run", "--max-hold", "1s", "--min-hold", "2s", "x", "--", "true")
        self.refused("run", "--status-fd", "77", "x", "--", "true", words=["--status-fd 77"])
        self.refused("run", "--permits", "2", "x", "--", "true", words=["--of"])
        self.refused("run", "--permits", "3", "--of", "2", "x", "--", "true", words=["1 to 2"])
        self.refused("run", "--permits", "257", "--of", "900", "x", "--", "true", words=["1 to 256"])
        self.refused("run", "--of", "0", "x", "--", "true", words=["1 to 65535"])
        self.refused("run", "-s", "--of", "2", "x", "--", "true", words=["--permits"])
        self.refused("run", "-s", "-x", "x", "--", "true", words=["--exclusive"])
        self.refused("run", "--on-ask", "HELLO", "x", "--", "true", words=["--on-ask", '"HELLO"'])
        self.refused("elect", "x", "y", "--", "true", words=['"y"'])
        self.refused("elect", "--value", "v" * 129, "x", "--", "true", words=["128 bytes"])
        self.refused("elect", "x", words=["missing command to run"])
        self.refused("--local", "list", words=["--local"])
        self.refused("check", words=["HOLDFAST_DEADLINE_FILE"])

    def test_options_of_flock_that_are_not_offered(self):
        for option in ("-o", "--close", "-u", "-F", "-c", "--slots"):
            self.refused("run", option, "x", "--", "true", words=[option, "is not supported"])
        self.assertEqual(self.holdfast("run", "-x", "x", "--", "true").code, 0)

    def test_names_that_are_subcommands(self):
        for name in ("run", "list", "demo", "config"):
            result = self.holdfast("run", name, "--", "true")
            self.assertEqual(result.code, 0, result)

    def test_global_options_after_the_subcommand(self):
        result = self.holdfast("run", "x", "--url", self.url, "--", "echo", "in", url=None)
        self.assertEqual((result.code, result.out), (0, "in\n"), result)

    def test_help_and_version(self):
        self.assertEqual(self.holdfast("--version", url=None).out[:9], "holdfast ")
        for sub in ("run", "elect", "check", "inspect", "leader", "list", "ask", "break", "backends",
                    "config", "demo"):
            result = self.holdfast(sub, "--help", url=None)
            self.assertEqual((result.code, result.err), (0, ""), result)

    def test_nothing_configured(self):
        result = self.holdfast("run", "x", "--", "true", url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn("--local", result.err)


class Environment(CliTest):
    def variables(self, *options, **more):
        result = self.holdfast("run", *options, "jobs/a b", "--", "env", "-0", **more)
        self.assertEqual(result.code, 0, result)
        pairs = (entry.split("=", 1) for entry in result.out.split("\0") if entry)
        return {k: v for k, v in pairs if k.startswith("HOLDFAST_")}

    def test_what_the_command_sees(self):
        first = self.variables("--ttl", "7s")
        self.assertEqual(first["HOLDFAST_LOCK"], "jobs/a b")
        self.assertEqual(first["HOLDFAST_BACKEND"], "sqlite")
        self.assertEqual(first["HOLDFAST_TTL_MS"], "7000")
        self.assertEqual(first["HOLDFAST_PREVIOUS"], "none")
        self.assertGreater(int(first["HOLDFAST_TOKEN"]), 0)
        self.assertFalse(os.path.exists(first["HOLDFAST_DEADLINE_FILE"]))
        second = self.variables()
        self.assertEqual(second["HOLDFAST_PREVIOUS"], "released")
        self.assertGreater(int(second["HOLDFAST_TOKEN"]), int(first["HOLDFAST_TOKEN"]))
        self.assertNotEqual(second["HOLDFAST_OWNER"], first["HOLDFAST_OWNER"])

    def test_a_failed_command_leaves_abandoned_work(self):
        self.assertEqual(self.holdfast("run", "jobs/a b", "--", "false").code, 1)
        result = self.holdfast("run", "jobs/a b", "--", "true")
        self.assertIn("abandoned it: its work may be incomplete", result.err)
        self.holdfast("run", "jobs/a b", "--", "false")
        self.assertEqual(self.variables()["HOLDFAST_PREVIOUS"], "abandoned")

    def test_a_crashed_holder_is_told(self):
        holder = self.hold("job", "--ttl", "2s", command=("sleep", "1000"))
        holder.kill()
        holder.wait()
        result = self.holdfast("run", "job", "--", "sh", "-c", "echo $HOLDFAST_PREVIOUS")
        self.assertEqual(result.out, "crashed\n", result)
        self.assertIn('the previous holder of "job" crashed: its work may be incomplete', result.err)

    def test_check_in_the_command(self):
        script = f'"{CLI}" check && "{CLI}" --json check'
        result = self.holdfast("run", "--ttl", "5s", "job", "--", "sh", "-c", script)
        self.assertEqual(result.code, 0, result)
        left, line = result.out.splitlines()
        self.assertTrue(3000 < int(left) <= 5000, left)
        self.assertEqual(json.loads(line)["schema"], "holdfast.check/1")

    def test_check_after_the_end(self):
        with open(self.path("script"), "w") as f:
            f.write(f'env | grep ^HOLDFAST_ | sed "s/^/export /; s/=\\(.*\\)/=\'\\1\'/"')
        out = self.holdfast("run", "job", "--", "sh", self.path("script")).out
        result = subprocess.run(["sh", "-c", out + f'\nexec "{CLI}" check'], env=self.env,
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (76, "0\n"), result)


class Time(CliTest):
    def test_min_hold(self):
        began = time.monotonic()
        holder = self.start("run", "--min-hold", "1.5", "job", "--", "true")
        waiter = self.holdfast("run", "job", "--", "true")
        self.assertEqual((waiter.code, holder.wait()), (0, 0))
        self.assertGreaterEqual(time.monotonic() - began, 1.5)

    def test_a_signal_ends_min_hold(self):
        holder = self.start("run", "--min-hold", "60", "job", "--", "touch", self.path("ran"))
        until(lambda: os.path.exists(self.path("ran")), "the command ran")
        until(lambda: guardian_gone(holder), "the command has ended")
        holder.send_signal(signal.SIGTERM)
        self.assertEqual(holder.wait(timeout=5), 0)
        self.assert_free("job")

    def test_max_hold(self):
        result = self.holdfast("run", "--max-hold", "1s", "job", "--", "sleep", "1000")
        self.assertEqual(result.code, 76, result)
        self.assertIn("--max-hold is 1.0 s", result.err)

    def test_renewals_outlast_the_ttl(self):
        began = support.boot_ns()
        result = self.holdfast("run", "--ttl", "3s", "job", "--", "sleep", "7")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertGreater(support.boot_ns() - began, 7_000_000_000)


def guardian_gone(process):
    guardian = support.guardian_of(process.pid)
    return guardian is None or not support.children(guardian)


class Waiting(CliTest):
    def test_signals_end_the_wait_and_leave_nothing_queued(self):
        self.hold("job")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            waiter = self.start("run", "job", "--", "true")
            until(lambda: "waiting for" in (waiter.stderr.readline()), "it says that it waits")
            began = time.monotonic()
            waiter.send_signal(number)
            # Of an interrupt it dies itself, which a shell shows as 130 and ends its loop for.
            self.assertEqual(waiter.wait(timeout=5), -number if number == signal.SIGINT
                             else 128 + number)
            self.assertLess(time.monotonic() - began, 2)
            self.assertEqual(self.inspect("job")["waiters"], [])

    def test_the_waiter_comes_next(self):
        holder = self.hold("job")
        waiter = self.start("run", "job", "--", "echo", "mine")
        until(lambda: "held by" in waiter.stderr.readline(), "it says who holds it")
        holder.terminate()
        self.assertEqual(holder.wait(), 143)
        self.assertEqual(waiter.communicate(timeout=10)[0], "mine\n")


class HandOver(CliTest):
    def test_a_command_starts_whenever_the_release_comes(self):
        # With Redis a grant that a release hands over counts from the waiter's last request, up to a second ago, and lasts
        # for 3 s until the waiter has spoken. The guardian needs 2.5 s of a ttl of 10 s.
        server = support.Redis()
        self.addCleanup(server.close)
        names = [f"job{i}" for i in range(8)]
        holders = {n: self.hold(n, url=server.url) for n in names}
        waiters = {n: self.start("run", n, "--", "true", url=server.url) for n in names}
        for n in names:
            support.until(lambda n=n: self.inspect(n, url=server.url)["waiters"], f"{n} is waited for")
        for n in names:
            # Not at once: the waiters ask again once a second, all at the same moment.
            time.sleep(0.12)
            holders[n].terminate()
        for n in names:
            out, err = waiters[n].communicate(timeout=support.CAP)
            self.assertEqual((waiters[n].returncode, "LOST" in err), (0, False), (n, out, err))


class Signals(CliTest):
    def test_forwarded_to_the_whole_group(self):
        script = ('for n in HUP USR1 USR2; do trap "echo $n" $n; done;'
                  'for n in INT QUIT; do trap "echo $n; exit 7" $n; done; echo ready;'
                  'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); read -t 0.01 x </dev/null || '
                  '/bin/sleep 0.01; done')
        # One that ends things for each: a second one would kill, whatever the command does.
        for last, code in (("INT", 7), ("QUIT", 7), ("TERM", 143)):
            process = self.start("run", "job", "--", "bash", "-c", script)
            self.assertEqual(process.stdout.readline(), "ready\n")
            for name in ("HUP", "USR1", "USR2"):
                process.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(process.stdout.readline(), name + "\n")
            process.send_signal(getattr(signal, "SIG" + last))
            if code == 7:
                self.assertEqual(process.stdout.readline(), last + "\n")
            self.assertEqual(process.wait(timeout=10), code)
            self.assert_free("job")

    def test_the_second_interrupt_kills(self):
        script = "trap '' INT TERM; echo ready; while :; do /bin/sleep 0.05; done"
        process = self.start("run", "job", "--", "bash", "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        # Two pending signals of one kind are one: the first must have been read.
        until(lambda: not support.pending(process.pid, signal.SIGINT), "the first is taken")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 137)
        self.assert_free("job")

    def test_ignored_hangup_stays_ignored(self):
        result = self.holdfast("run", "job", "--", "sh", "-c", "kill -HUP $$; echo alive",
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(result.out, "alive\n", result)


class StatusFd(CliTest):
    def events(self, *args):
        out, into = os.pipe()
        self.into = into
        result = self.holdfast("run", "--status-fd", str(into), *args, pass_fds=[into])
        os.close(into)
        with os.fdopen(out) as f:
            return result, [json.loads(line) for line in f]

    def test_one_line_per_event(self):
        result, events = self.events("--ttl", "3s", "job", "--", "sleep", "2.5")
        kinds = [e["event"] for e in events]
        self.assertEqual(kinds[0], "acquired", events)
        self.assertIn("renewed", kinds)
        self.assertEqual(kinds[-2:], ["child_exit", "released"])
        self.assertEqual(events[-2].get("code"), 0, events)
        self.assertEqual((events[-1]["result"], events[-1]["outcome"]), ("released", "done"))
        self.assertTrue(all(e["name"] == "job" and e["time"].endswith("Z") for e in events))

    def test_waiting_and_giving_up(self):
        self.hold("job")
        _, events = self.events("-w", "1", "job", "--", "true")
        self.assertEqual([e["event"] for e in events], ["waiting", "not_acquired"])
        self.assertGreater(events[0]["holder"]["pid"], 0)

    def test_the_command_does_not_inherit_it(self):
        result, events = self.events("job", "--", "ls", "/proc/self/fd")
        self.assertEqual(len(events), 3)
        self.assertNotIn(str(self.into), result.out.split())

    def test_on_standard_output(self):
        result = self.holdfast("run", "--status-fd", "1", "job", "--", "echo", "mine")
        self.assertIn("mine\n", result.out)
        self.assertIn('"event":"released"', result.out)

    def away_until(self, event, before, then):
        """The server is paused after `before`, until `event`; `then` must follow, and the end."""
        server = support.Redis()
        self.addCleanup(server.close)
        holder = self.hold("job", "--ttl", "60s", url=server.url) if before == "waiting" else None
        out, into = os.pipe()
        process = self.start("-v", "run", "-w", "15", "--ttl", "6s", "--grace", "0.1", "--status-fd", str(into),
                             "job", "--", "timeout", "15", "cat", url=server.url, pass_fds=[into],
                             stdin=subprocess.PIPE)
        os.close(into)
        with os.fdopen(out) as f:
            def read_until(kind):
                for line in f:
                    if json.loads(line)["event"] == kind:
                        return
                self.fail(f"no event {kind}: " + process.stderr.read())
            read_until(before)
            server.say("pause")
            read_until(event)
            server.say("resume")
            if holder:
                holder.terminate()
            read_until(then)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=10), 0)
            read_until("released")
        return process.stderr.read()

    def test_at_risk_and_recovered(self):
        """Readers: operations.md promises these events."""
        err = self.away_until("at_risk", "acquired", "recovered")
        self.assertIn("did not answer a renewal", err)
        self.assertIn("answers renewals of", err)

    def test_in_doubt(self):
        """Readers: operations.md promises this event."""
        self.assertIn("resolving the request", self.away_until("in_doubt", "waiting", "acquired"))

    def test_a_waiter_says_once_that_nothing_answers_and_when_it_does_again(self):
        err = self.away_until("unreachable", "waiting", "reachable")
        self.assertEqual(err.count('no answer from the server while waiting for "job"'), 1, err)
        self.assertEqual(err.count('the server answers again: waiting for "job"'), 1, err)

    def test_what_the_server_refuses_reaches_whoever_holds_and_releases(self):
        server = support.Redis()
        self.addCleanup(server.close)
        port = server.url.rsplit(":", 1)[1].split("/")[0]

        def may(*rules):
            subprocess.run(["redis-cli", "-p", port, "ACL", "SETUSER", "default", *rules], check=True,
                           capture_output=True, timeout=support.CAP)

        def held(ttl):
            out, into = os.pipe()
            process = self.start("run", "--ttl", ttl, "--grace", "0.1", "--status-fd", str(into), "job", "--",
                                 "timeout", "15", "cat", url=server.url, pass_fds=[into], stdin=subprocess.PIPE)
            os.close(into)
            events = os.fdopen(out)
            self.addCleanup(events.close)
            return process, (json.loads(line) for line in events)

        def next_one(events, kind):
            return next(e for e in events if e["event"] == kind)

        process, events = held("60s")
        next_one(events, "acquired")
        may("-@scripting")
        process.stdin.close()
        self.assertRegex(next_one(events, "released")["error"], "(?i)permission")
        self.assertEqual(process.wait(timeout=support.CAP), 0)
        said = process.stderr.read()
        self.assertRegex(said, r'(?i)the server refused the release \(.*permission')
        self.assertIn('the server did not execute the release: it frees "job" within', said)
        self.assertEqual(said.count("refused the release"), 1, said)
        may("+@all")
        self.assertEqual(self.holdfast("break", "--force", "--now", "job", url=server.url).code, 0)

        process, events = held("3s")
        next_one(events, "acquired")
        may("-@scripting")
        self.assertRegex(next_one(events, "at_risk")["error"], "(?i)permission")
        next_one(events, "lost")
        process.wait(timeout=support.CAP)
        err = process.stderr.read()
        self.assertRegex(err, r'(?i)the server refused a renewal of "job": .*permission')
        self.assertRegex(err, r"(?i)no renewal confirmed for .*permission")

    def test_that_nobody_reads(self):
        """A full pipe costs events, which is said, and not the job."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
        os.write(into, b"." * 3800)  # room for the first line or two
        process = self.start("run", "--ttl", "2s", "--status-fd", str(into), "job", "--", "sleep",
                             "3", pass_fds=[into])
        os.close(into)
        self.assertEqual(process.wait(timeout=10), 0)
        self.assertRegex(process.stderr.read(), r"--status-fd \d+: dropped \d unread events")
        self.assertIn(b'"event":"acquired"', os.read(out, 4096))

    def test_the_command_may_wait_where_it_is_shared(self):
        program = "import os; print(os.get_blocking(1))"
        result = self.holdfast("run", "--status-fd", "1", "job", "--", sys.executable, "-c", program)
        self.assertIn("True\n", result.out)

    def test_a_lost_lock(self):
        result, events = self.events("--max-hold", "700ms", "job", "--", "sleep", "100")
        self.assertEqual(result.code, 76)
        self.assertEqual([e["event"] for e in events if e["event"] != "renewed"],
                         ["acquired", "lost", "child_exit", "released"])
        self.assertEqual(events[-1]["outcome"], "abandoned")


class Secrets(CliTest):
    def test_a_password_is_in_no_usage_error(self):
        """Where a URL stands by mistake, too."""
        for secret, url in (("open-sesame-7", "redis://:open-sesame-7@host"),
                            ("open-sesame-7", "redis://jobs:open-sesame-7@host:1/x?ttl=5s"),
                            ("open-sesame-7", "redis://host?password=open-sesame-7"),
                            ("open/ses?me@7", "redis://:open/ses?me@7@host"),
                            ('open"sesame', 'redis://:open"sesame@host')):
            for args in ([url, "list"], ["list", "a", url], ["run", url, "x", "--", "true"],
                         ["list", "--color", url], ["list", "--limit", url], ["list", "--ulr=" + url],
                         ["--url", url, "--url", url, "list"], ["run", "x", "-w", url, "--", "true"],
                         ["--backend", url, "list"], ["config", "check", url],
                         ["schema", url], ["demo", url], ["--config", url, "list"]):
                result = self.holdfast(*args, url=None)
                self.assertNotEqual(result.code, 0, result)
                for form in (secret, secret.replace('"', '\\"')):
                    self.assertNotIn(form, result.err + result.out, args)

    def test_a_password_is_not_in_our_arguments(self):
        server = support.Redis("--password=open-sesame-7")
        self.addCleanup(server.close)
        url = server.url
        self.assertIn("open-sesame-7", url)
        process = self.hold("job", url=url)
        for pid in [process.pid, support.guardian_of(process.pid)]:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            self.assertNotIn(b"open-sesame-7", line)
            self.assertIn(b"redis://", line)
        process.terminate()
        out, err = process.communicate(timeout=10)
        self.assertNotIn("open-sesame-7", out + err)
        self.assertEqual(err.count("password_file or password_env"), 1, err)
        shown = self.holdfast("config", "show", url=url)
        self.assertNotIn("open-sesame-7", shown.out + shown.err)
        self.assertIn("(set)", shown.out)
        self.assertNotIn("open-sesame-7", self.holdfast("--json", "config", "show", url=url).out)

    def test_the_command_sees_the_scheme_only(self):
        server = support.Redis("--password=open-sesame-7")
        self.addCleanup(server.close)
        result = self.holdfast("run", "job", "--", "env", url=server.url)
        self.assertIn("HOLDFAST_BACKEND=redis\n", result.out)
        self.assertNotIn("open-sesame-7", result.out)


if __name__ == "__main__":
    support.main()
