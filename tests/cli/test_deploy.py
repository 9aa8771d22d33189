"""What docs/deploy says: the units, cron's line, and holdfast as process 1 of a pid namespace."""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import support
from support import CLI, CliTest, alive, children, until

DEPLOY = os.path.join(support.HERE, "..", "..", "docs", "deploy")
ROOT = os.geteuid() == 0


def free_ports(n):
    """Ports that nothing listens on at present."""
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Systemd(CliTest):
    def verify(self, change=lambda text: text):
        """What systemd-analyze says of the units; empty: nothing. Its exit code is 0 for most mistakes."""
        units = []
        for unit in glob.glob(os.path.join(DEPLOY, "systemd", "*")):
            with open(unit) as f:
                text = f.read().replace("/usr/bin/holdfast", CLI)
            units.append(self.path(os.path.basename(unit)))
            with open(units[-1], "w") as f:
                f.write(change(text))
        self.assertEqual(len(units), 3)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True,
                              timeout=60, check=False)
        return done.stdout + done.stderr + ("" if done.returncode == 0 else "it failed")

    def test_the_units_are_right(self):
        self.assertEqual(self.verify(), "")

    def test_and_the_check_can_fail(self):
        for right, wrong in (("KillMode=mixed", "KillMode=mixt"), ("TimeoutStopSec", "TimeoutStopSecs"),
                             (CLI, "/nowhere/holdfast"), ("03:00:00", "25:00:00")):
            self.assertNotEqual(self.verify(lambda text: text.replace(right, wrong)), "", wrong)

    def test_their_command_lines_are_accepted(self):
        for unit in glob.glob(os.path.join(DEPLOY, "systemd", "*.service")):
            with open(unit) as f:
                line = re.search(r"(?m)^ExecStart=/usr/bin/holdfast --config \S+ (.*) -- \S+$", f.read())
            words = line[1].replace("%H", "web1").replace("--min-hold 5m", "--min-hold 10ms").split()
            self.assertEqual(self.holdfast(*words, "--", "true").code, 0, words)


class Cron(CliTest):
    def setUp(self):
        super().setUp()
        with open(os.path.join(DEPLOY, "cron.md")) as f:
            text = f.read()
        found = re.search(r"(?m)^PATH=.*\n0 3 \* \* \*  \w+  holdfast --config \S+ (.*) -- \S+$", text)
        self.line = found[1]
        self.assertNotIn("%", self.line)

    def cron(self, command, options=lambda line: line):
        """As cron runs it: sh -c, hardly any environment, a pipe for what it prints."""
        line = f'"{CLI}" --url "{self.url}" {options(self.line)} -- {command}'
        return subprocess.run(["/bin/sh", "-c", line], env={"HOME": self.folder, "PATH": os.environ["PATH"], "TMPDIR": self.folder},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=support.CAP, check=False)

    def soon(self, line):
        return line.replace("--min-hold 5m", "--min-hold 10ms")

    def test_free_it_runs_and_prints_what_the_report_prints(self):
        done = self.cron("echo report", self.soon)
        self.assertEqual((done.returncode, done.stdout), (0, "report\n"))
        self.assertEqual(self.cron("true", self.soon).stdout, "")
        self.assertEqual(self.cron("sh -c 'exit 3'", self.soon).returncode, 3)

    def test_held_it_prints_nothing_and_succeeds(self):
        self.hold("nightly-report")
        done = self.cron("echo report")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_it_stays_closed_after_a_short_report(self):
        first = self.start("-q", "run", "-n", "--min-hold", "5m", "nightly-report", "--", "true")
        until(lambda: self.inspect("nightly-report")["held"] and self.command_of(first.pid) is None, "it has run")
        done = self.cron("echo report")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        first.terminate()
        self.assertEqual(first.wait(timeout=support.CAP), 0)
        self.assert_free("nightly-report")

    def test_lost_it_says_so(self):
        line = self.soon(self.line).split()
        run = self.start(*line, "--", "sleep", "1000")
        self.until_running(run)
        self.assertEqual(self.holdfast("break", "--force", "nightly-report").code, 0)
        self.assertEqual(run.wait(timeout=support.CAP), 76)
        self.assertIn('LOST lock "nightly-report"', run.stderr.read())

    def test_after_a_crash_the_next_one_warns(self):
        run = self.hold("nightly-report", "--ttl", "1s")
        run.kill()
        run.wait()
        until(lambda: not self.inspect("nightly-report")["held"], "its lease has ended")
        self.assertIn("the previous holder of \"nightly-report\" crashed", self.cron("true", self.soon).stdout)


class Stunnel(CliTest):
    """The page's two files between a client and a server of ZooKeeper, with a certificate of each end."""

    def openssl(self, name, *options):
        with open(self.path("openssl.cnf"), "w") as f:
            f.write("[req]\ndistinguished_name = name\nprompt = no\n[name]\nCN = of-a-test\n"
                    "[authority]\nbasicConstraints = critical,CA:TRUE\nkeyUsage = critical,keyCertSign\n"
                    "[end]\nsubjectAltName = DNS:zk1.example\n")
        done = subprocess.run(["openssl", "req", "-x509", "-config", "openssl.cnf", "-newkey", "rsa:2048", "-nodes",
                               "-days", "30", "-keyout", f"{name}.key", "-out", f"{name}.pem", *options],
                              cwd=self.folder, capture_output=True, text=True, timeout=support.CAP, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def stunnel(self, name, text):
        """Runs it, and returns when it listens."""
        port = int(re.search(r"(?m)^accept = .*:(\d+)$", text)[1])
        with open(self.path(name), "w") as f:
            f.write("foreground = yes\npid =\n" + text)
        log = open(self.path(name + ".log"), "wb+")
        self.addCleanup(log.close)
        process = subprocess.Popen(["stunnel", name], cwd=self.folder, stdout=log, stderr=log)

        def end():
            process.terminate()
            process.wait(timeout=support.CAP)
        self.addCleanup(end)

        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        until(listens, name + " listens")
        return process

    def test_holdfast_runs_through_the_two_files_of_the_page(self):
        with open(os.path.join(DEPLOY, "stunnel.md")) as f:
            server, client = re.findall(r"(?s)```ini\n(.*?)```", f.read())
        self.openssl("authority", "-extensions", "authority")
        for end in ("server", "client"):
            self.openssl(end, "-extensions", "end", "-CA", "authority.pem", "-CAkey", "authority.key")
        lab = support.Lab("zookeeper")
        self.addCleanup(lab.close)
        between, near = free_ports(2)
        changes = (("/etc/stunnel/", ""), ("0.0.0.0:2281", f"127.0.0.1:{between}"),
                   ("zk1.example:2281", f"127.0.0.1:{between}"), ("127.0.0.1:21811", f"127.0.0.1:{near}"),
                   ("127.0.0.1:2181", "127.0.0.1:" + lab.url.rsplit(":", 1)[1]))
        for old, new in changes:
            self.assertIn(old, server + client)
            server, client = server.replace(old, new), client.replace(old, new)
        self.stunnel("server.conf", server)
        tunnel = self.stunnel("client.conf", client)
        self.url = f"zookeeper://127.0.0.1:{near}"
        run = ("run", "-n", "through", "--", "echo", "held")
        done = self.holdfast(*run)
        self.assertEqual((done.code, done.out), (0, "held\n"), done)
        # Neither another server of the authority, nor a client without a certificate.
        for old, new in (("checkHost = zk1.example", "checkHost = zk2.example"), ("cert = client.pem\nkey = client.key\n", "")):
            self.assertIn(old, client)
            tunnel.terminate()
            tunnel.wait(timeout=support.CAP)
            tunnel = self.stunnel("client.conf", client.replace(old, new))
            self.assertEqual(self.holdfast(*run).code, 69, old)


class ProcessOne(CliTest):
    """holdfast is process 1 of a pid namespace, as in a container."""

    def inside(self, *options, script):
        """Starts it; returns (unshare, holdfast), the latter as seen from outside, once its command runs."""
        # unshare forwards nothing: signals go to holdfast itself.
        more = [] if ROOT else ["--user", "--map-root-user"]
        process = subprocess.Popen(["unshare", *more, "--pid", "--fork", "--mount-proc", "--kill-child", CLI, "--url", self.url,
                                    "run", *options, "job", "--", "sh", "-c", script], env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        one = until(lambda: children(process.pid), "holdfast runs")[0]
        self.assertEqual(process.stdout.readline(), "begun\n")
        with open(f"/proc/{one}/status") as f:
            inner = next(line.split() for line in f if line.startswith("NSpid:"))
        self.assertEqual(inner[-1], "1")
        return process, one

    def end(self, process, one, number):
        os.kill(one, number)
        return process.wait(timeout=support.CAP)

    def test_sigterm_ends_the_command_and_releases_the_lock(self):
        process, one = self.inside(script="echo begun; exec sleep 1000")
        self.assertEqual(self.inspect("job")["holders"][0]["pid"], 1)
        self.assertEqual(self.end(process, one, signal.SIGTERM), 128 + signal.SIGTERM)
        self.assert_free("job")

    def test_the_command_may_end_in_its_own_time_and_with_its_own_code(self):
        script = f"trap 'until [ -e {self.path('go')} ]; do sleep 0.01; done; echo done; exit 7' TERM; echo begun; while :; do sleep 0.01; done"
        process, one = self.inside("--grace", "10ms", script=script)
        os.kill(one, signal.SIGTERM)
        # Longer than the grace, which is not for this.
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        with open(self.path("go"), "w"):
            pass
        self.assertEqual(process.stdout.readline(), "done\n")
        self.assertEqual(process.wait(timeout=support.CAP), 7)
        self.assert_free("job")

    def test_orphans_are_reaped(self):
        script = ("for i in 1 2 3 4 5; do sh -c 'sh -c \"exit 0\" & exit 0'; done; echo begun; exec sleep 1000")
        process, one = self.inside(script=script)

        def zombies():
            found = []
            for entry in os.listdir("/proc"):
                try:
                    with open(f"/proc/{entry}/status") as f:
                        text = f.read()
                except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
                    continue
                namespace = re.search(r"(?m)^NSpid:\t\d+\t\d+$", text)
                if namespace and re.search(r"(?m)^State:\tZ", text):
                    found.append(entry)
            return found
        # The guardian has them, not process 1; and one that goes on for a moment is no zombie yet.
        guardian = support.guardian_of(one)
        until(lambda: len(children(guardian)) == 1, "only the command is left")
        until(lambda: not zombies(), "no zombie is left in the namespace")
        self.assertEqual(children(one), [guardian])
        self.assertEqual(self.end(process, one, signal.SIGTERM), 128 + signal.SIGTERM)

    def test_leftovers_are_stopped_before_the_release(self):
        script = f"sh -c 'trap \"\" TERM; exec {sys.executable} {support.WRITER} {self.path('log')} --alone' & until [ -s {self.path('log')} ]; do sleep 0.01; done; echo begun"
        process, _ = self.inside("--grace", "200ms", script=script)
        self.assertEqual(process.wait(timeout=support.CAP), 0)
        self.assertIn("left processes", process.stderr.read())
        self.assert_free("job")

    def test_an_interrupt_is_an_exit_code(self):
        """Process 1 cannot end by a signal that it sends to itself."""
        process, one = self.inside(script="echo begun; exec sleep 1000")
        self.assertEqual(self.end(process, one, signal.SIGINT), 130)
        self.assert_free("job")

    def test_killed_it_takes_everything_along_and_leaves_the_lock_to_its_ttl(self):
        """As the kubelet does when terminationGracePeriodSeconds are over."""
        process, one = self.inside("--ttl", "2s", script="trap '' TERM; echo begun; while :; do sleep 0.01; done")
        inner = children(support.guardian_of(one))
        os.kill(one, signal.SIGTERM)
        os.kill(one, signal.SIGKILL)
        process.wait(timeout=support.CAP)
        until(lambda: not any(alive(pid) for pid in inner), "the command has ended")
        until(lambda: not self.inspect("job")["held"], "the lease has ended")
        # Nobody was left to remove it.
        for folder in glob.glob(self.path("holdfast-??????")):
            shutil.rmtree(folder)

    def test_a_wait_ends_and_leaves_nothing(self):
        self.hold("job")
        more = [] if ROOT else ["--user", "--map-root-user"]
        process = subprocess.Popen(["unshare", *more, "--pid", "--fork", "--mount-proc", "--kill-child", CLI, "--url", self.url, "run",
                                    "job", "--", "true"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        self.assertIn("waiting for", process.stderr.readline())
        one = children(process.pid)[0]
        self.assertEqual(self.end(process, one, signal.SIGTERM), 128 + signal.SIGTERM)
        self.assertEqual(self.inspect("job")["waiters"], [])


if __name__ == "__main__":
    support.main()
