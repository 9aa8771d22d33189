"""Several names at once, elections, shared holders and permits, and requests to release."""
import json
import os
import signal
import subprocess

import support
from support import CLI, CliTest, until


class Several(CliTest):
    def test_all_are_held_while_the_command_runs(self):
        script = (f'for n in a b c; do "{CLI}" run -n $n -- true; echo $?; done; '
                  'printf "%s|" "$HOLDFAST_LOCK" "$HOLDFAST_TOKEN" "$HOLDFAST_OWNER" "$HOLDFAST_PREVIOUS"')
        result = self.holdfast("run", "c", "a", "b", "a", "--", "sh", "-c", script,
                               env={"HOLDFAST_URL": self.url})
        self.assertEqual(result.code, 0, result)
        self.assertTrue(result.out.startswith("75\n75\n75\n"), result)
        lock, token, owner, previous, _ = result.out[9:].split("|")
        self.assertEqual(lock, "c\na\nb")
        self.assertEqual(len(set(owner.split())), 3)
        self.assertTrue(all(int(t) > 0 for t in token.split()))
        self.assertEqual(previous, "none")
        for name in "abc":
            self.assert_free(name)

    def test_one_that_is_busy_leaves_none(self):
        self.hold("b", "--label", "nightly")
        result = self.holdfast("run", "-n", "a", "b", "c", "--", "touch", self.path("ran"))
        self.assertEqual(result.code, 75, result)
        self.assertIn('"b" is held by ', result.err)
        self.assertIn('"nightly"', result.err)
        result = self.holdfast("run", "-w", "0.2", "-E", "3", "c", "b", "a", "--", "touch", self.path("ran"))
        self.assertEqual(result.code, 3, result)
        self.assertFalse(os.path.exists(self.path("ran")))
        for name in "ac":
            until(lambda: not self.inspect(name)["held"], "it is given back")

    def test_the_wait_is_told_and_can_be_ended(self):
        self.hold("b")
        waiter = self.start("run", "b", "a", "--", "true")
        self.assertIn('waiting for "b": held by ', waiter.stderr.readline())
        waiter.send_signal(signal.SIGTERM)
        self.assertEqual(waiter.wait(timeout=5), 128 + signal.SIGTERM)
        until(lambda: not self.inspect("a")["held"], "it is given back")

    def test_the_loss_of_one_ends_the_command(self):
        for lost in "ab":
            holder = self.hold("a", "b", command=("sleep", "1000"))
            result = self.holdfast("break", "--now", "--force", lost)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(holder.wait(timeout=15), 76)
            self.assertIn(f'LOST lock "{lost}": ', holder.stderr.read())
            for name in "ab":
                until(lambda: not self.inspect(name)["held"], "it is free")

    def test_killed_it_leaves_nothing_running(self):
        holder = self.hold("a", "b", "--ttl", "2s", command=("sleep", "1000"))
        command = self.command_of(holder.pid)
        holder.kill()
        until(lambda: not support.alive(command), "the command has ended")
        for name in "ab":
            self.assertEqual(self.holdfast("run", "-w", "10", name, "--", "true").code, 0)

    def test_events_name_what_they_are_about(self):
        with open(self.path("events"), "w") as f:
            result = self.holdfast("run", "--status-fd", str(f.fileno()), "b", "a", "--", "true",
                                   pass_fds=(f.fileno(),))
        self.assertEqual(result.code, 0, result)
        with open(self.path("events")) as f:
            events = [json.loads(line) for line in f]
        self.assertEqual([(e["event"], e.get("name"), e.get("names")) for e in events],
                         [("acquired", "b", None), ("acquired", "a", None),
                          ("child_exit", None, ["b", "a"]), ("released", None, ["b", "a"])])

    def test_a_name_that_is_none_is_refused_before_anything_is_asked(self):
        self.hold("a")
        result = self.holdfast("run", "a", "x" * 600, "--", "true")
        self.assertEqual(result.code, 65, result)
        self.assertIn("NOT acquired", result.err)

    def test_its_own_locks_are_warned_of(self):
        outer = self.start("run", "a", "b", "--", CLI, "--url", self.url, "run", "b", "--", "true")
        self.assertIn('already runs under "b"', outer.stderr.readline())


class Exclusive(CliTest):
    def test_an_explicit_exclusive_lock_is_that_of_a_shared_mutex(self):
        # At ZooKeeper the two differ: Curator's read-write lock sees its own kind of nodes only.
        server = support.Lab("zookeeper")
        self.addCleanup(server.close)
        for options, kind in (((), "mutex"), (("-x",), "shared_mutex"), (("-e",), "shared_mutex"),
                              (("--exclusive",), "shared_mutex")):
            result = self.holdfast("run", *options, "a", "b", "--", CLI, "--url", server.url, "--json", "list", "-l",
                                   url=server.url)
            self.assertEqual(result.code, 0, result)
            seen = [json.loads(line) for line in result.out.splitlines()]
            self.assertEqual([(s["name"], s["kind"], s["holders"][0]["mode"]) for s in seen],
                             [("a", kind, "exclusive"), ("b", kind, "exclusive")], options)
        self.hold("job", "-x")
        for other in ((), ("-x",), ("-s",)):
            self.assertEqual(self.holdfast("run", "-n", *other, "job", "--", "true").code, 75, other)

    def test_where_there_are_no_readers_it_is_a_mutex(self):
        server = support.Redis()
        self.addCleanup(server.close)
        url = server.url + "?mode=plain"
        self.assertEqual(self.holdfast("run", "-x", "job", "--", "true", url=url).code, 0)
        self.assertEqual(self.holdfast("run", "-s", "job", "--", "true", url=url).code, 78)


class Elections(CliTest):
    def test_one_leads_and_shows_its_value(self):
        nobody = self.holdfast("leader", "job")
        self.assertEqual((nobody.code, nobody.out), (1, ""), nobody)
        leads = self.start("elect", "--value", "10.0.0.1:80", "job", "--", "sleep", "1000")
        self.until_running(leads)
        seen = self.holdfast("leader", "job")
        self.assertEqual((seen.code, seen.out, seen.err), (0, "10.0.0.1:80\n", ""), seen)
        said = json.loads(self.holdfast("--json", "leader", "job").out)
        self.assertEqual((said["schema"], said["led"], said["value"]), ("holdfast.leader/1", True, "10.0.0.1:80"))
        other = self.holdfast("elect", "-n", "job", "--", "true")
        self.assertEqual(other.code, 75, other)
        self.assertIn("holdfast elect -w 60 job", other.err)
        leads.send_signal(signal.SIGTERM)
        leads.wait(timeout=10)
        self.assertFalse(json.loads(self.holdfast("--json", "leader", "job").out)["led"])

    def test_without_a_value_the_host_is_shown(self):
        self.until_running(self.start("elect", "job", "--", "sleep", "1000"))
        self.assertEqual(self.holdfast("leader", "job").out, os.uname().nodename + "\n")

    def test_a_foreign_leader_is_shown_by_its_value_or_its_owner_id(self):
        server = support.Lab("etcd")
        self.addCleanup(server.close)
        endpoint = server.url.split("//")[1].split("/")[0].split("?")[0]
        for words in (["elect", "/holdfast/job", "candidate"], ["lock", "/holdfast/other"]):
            foreign = subprocess.Popen(["etcdctl", "--endpoints", endpoint, *words],
                                       env={**self.env, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, text=True)
            self.started.append(foreign)
            self.assertTrue(foreign.stdout.readline())
        of = lambda name: json.loads(self.holdfast("--json", "leader", name, url=server.url).out)
        self.assertEqual((of("job")["value"], of("job")["host"]), ("candidate", ""), of("job"))
        self.assertEqual(self.holdfast("leader", "job", url=server.url).out, "candidate\n")
        self.assertEqual((of("other")["value"], of("other")["host"]), ("", ""), of("other"))
        self.assertTrue(of("other")["owner"])
        self.assertEqual(self.holdfast("leader", "other", url=server.url).out, of("other")["owner"] + "\n")

    def test_watch_prints_each_leader(self):
        one = self.start("elect", "--value", "one", "job", "--", "sleep", "1000")
        self.until_running(one)
        watch = self.start("leader", "--watch", "job")
        self.assertEqual(watch.stdout.readline(), "one\n")
        two = self.start("elect", "--value", "two", "job", "--", "sleep", "1000")
        one.send_signal(signal.SIGTERM)
        self.assertEqual(watch.stdout.readline(), "two\n")
        self.until_running(two)
        watch.send_signal(signal.SIGTERM)
        watch.wait(timeout=5)

    def test_a_leader_that_is_broken_is_stopped(self):
        leads = self.start("elect", "job", "--", "sleep", "1000")
        self.until_running(leads)
        self.assertEqual(self.holdfast("break", "--force", "--now", "job").code, 0)
        self.assertEqual(leads.wait(timeout=15), 76)


class InMemory(CliTest):
    """The kinds in one process: what the command does with them, on the backend that has them all."""

    def setUp(self):
        super().setUp()
        self.url = "memory:"

    def test_kinds(self):
        for options in (("-s",), ("--shared",), ("--of", "3"), ("--permits", "2", "--of", "3")):
            result = self.holdfast("run", *options, "a", "b", "--", "sh", "-c", "echo ${HOLDFAST_TOKEN-none}")
            self.assertEqual(result.code, 0, result)
            self.assertEqual(result.out == "none\n", "--of" in options, result)

    def test_a_lock_that_only_this_process_sees_is_warned_of(self):
        result = self.holdfast("run", "job", "--", "true")
        self.assertIn("memory excludes nobody: its locks exist in this process only", result.err)
        found = self.holdfast("doctor", "memory:", url=None)
        self.assertEqual(found.code, 2, found)
        self.assertIn("unsafe   memory.one_process", found.out)
        self.assertEqual(self.holdfast("run", "job", "--", "true", url="sqlite:" + self.path("x.db")).err, "")


class Kinds(CliTest):
    """On a backend that has them all is tried; on another one the refusal is."""

    def has(self, *capabilities):
        """Whether the backend has them."""
        known = json.loads(self.holdfast("--json", "backends").out)["backends"][0]["capabilities"]
        return all(c in known for c in capabilities)

    def refused(self, *args, word):
        result = self.holdfast(*args, "job", "--", "touch", self.path("ran"))
        self.assertEqual(result.code, 78, result)
        self.assertIn(f"not supported by this backend ({word})", result.err)
        self.assertIn("the command was not started", result.err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_shared(self):
        if not self.has("shared"):
            return self.refused("run", "-s", word="shared")
        self.hold("job", "-s")
        self.hold("job", "--shared", "--label", "second")
        self.assertEqual(self.holdfast("run", "-n", "job", "--", "true").code, 75)
        seen = self.inspect("job")
        self.assertEqual((seen["kind"], [h["mode"] for h in seen["holders"]]), ("shared_mutex", ["shared"] * 2))
        text = self.holdfast("inspect", "job").out
        self.assertRegex(text, r'(?m)^"job" is held by .*, shared$')
        self.assertRegex(text, r"(?m)^  and by .*, shared$")
        self.assertRegex(self.holdfast("list", "-l").out, r"(?m)^job  held by .* and 1 other")
        line = json.loads(self.holdfast("--json", "list", "-l").out)
        self.assertEqual((line["kind"], len(line["holders"])), ("shared_mutex", 2))

    def test_exclusive_keeps_shared_out(self):
        if not self.has("shared"):
            return
        self.hold("job")
        result = self.holdfast("run", "-n", "-s", "job", "--", "true")
        self.assertEqual(result.code, 75, result)

    def test_permits(self):
        if not self.has("semaphore"):
            return self.refused("run", "--of", "2", word="semaphore")
        self.hold("job", "--permits", "2", "--of", "3")
        self.hold("job", "--of", "3")
        self.assertEqual(self.holdfast("run", "-n", "--of", "3", "job", "--", "true").code, 75)
        seen = self.inspect("job")
        self.assertEqual((seen["kind"], seen["limit"]), ("semaphore", 3))
        self.assertEqual(sorted(h["permits"] for h in seen["holders"]), [1, 2])
        self.assertIn("3 of 3 permits are in use", self.holdfast("inspect", "job").out)
        for other in (["--of", "4"], []):
            result = self.holdfast("run", "-n", *other, "job", "--", "true")
            self.assertEqual(result.code, 69, result)
            self.assertIn("NOT acquired", result.err)

    def test_one_of_several_is_broken(self):
        if not self.has("shared", "break_lock"):
            return
        one = self.hold("job", "-s", "--label", "one")
        two = self.hold("job", "-s", "--label", "two")
        owner = next(h["owner"] for h in self.inspect("job")["holders"] if h["note"] == "one")
        nobody = self.holdfast("break", "--force", "--owner", "x.y.1.z", "job")
        self.assertEqual(nobody.code, 1, nobody)
        result = self.holdfast("break", "--force", "--owner", owner, "job")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(one.wait(timeout=15), 76)
        self.assertIsNone(two.poll())
        result = self.holdfast("--json", "break", "--force", "job")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(two.wait(timeout=15), 76)

    def test_ask(self):
        if not self.has("release_request"):
            result = self.holdfast("ask", "job")
            self.assertEqual(result.code, 78, result)
            return self.assertIn("not supported by this backend (release_request)", result.err)
        nobody = self.holdfast("ask", "job")
        self.assertEqual(nobody.code, 1, nobody)
        self.assertIn("has no holder", nobody.err)
        polite = self.hold("job", "--ttl", "1s", "--on-ask", "TERM")
        result = self.holdfast("ask", "job")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r'^asked \S+ \(pid \d+\) to release "job"\n$')
        self.assertEqual(polite.wait(timeout=15), 128 + signal.SIGTERM)
        self.assertIn('requested the release of "job"', polite.stderr.read())
        deaf = self.hold("deaf", "--ttl", "1s")
        said = json.loads(self.holdfast("--json", "ask", "deaf").out)
        self.assertEqual((said["schema"], said["holders"][0]["asked"]), ("holdfast.ask/1", True))
        self.assertIn("requested the release", deaf.stderr.readline())
        self.assertIsNone(deaf.poll())


class KindsOnRedis(support.OnOneRedis, Kinds):
    pass


if __name__ == "__main__":
    support.main()
