"""A machine at its limits: no descriptor, no thread, no room for the output, folders of somebody else."""
import os
import resource
import signal
import subprocess

import support
from support import CLI, CliTest, until

FAILING = os.environ["HOLDFAST_FAILING_CALLS"]


class Descriptors(CliTest):
    def test_without_an_event_descriptor_nothing_is_held(self):
        # One more succeeds each time, until the command runs: whatever fails, holdfast ends by itself.
        for succeed in range(40):
            process = self.start("run", "-w", "10", "job", "--", "true",
                                 env={"LD_PRELOAD": FAILING, "HOLDFAST_TEST_EVENTFD": str(succeed)})
            code = process.wait(timeout=30)
            until(lambda: not self.inspect("job")["held"], "nothing is held", cap=30)
            if code == 0:
                break
            self.assertIn(code, (69, 70, 78), process.stderr.read())
        self.assertEqual(code, 0)
        self.assertGreater(succeed, 1)


    def test_too_few_descriptors_are_told_with_the_limit_to_raise(self):
        said = 0
        for most in range(6, 40):
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            result = self.holdfast("run", "job", "--", "true", preexec_fn=limit)
            if result.code == 0:
                break
            self.assertEqual(result.code, 69, (most, result))
            self.assertIn("Too many open files", result.err, most)
            said += "ulimit -n" in result.err
        self.assertEqual(result.code, 0, result)
        self.assertGreater(said, 3)


class Threads(CliTest):
    def test_a_waiter_without_a_thread_for_its_look_waits_on_and_hears_signals(self):
        server = support.Redis()  # shows waiters
        self.addCleanup(server.close)
        self.hold("job", url=server.url)
        ends = []
        # One more thread can be started each time, until the wait has all that it wants.
        for succeed in range(30):
            process = self.start("run", "job", "--", "true", url=server.url,
                                 env={"LD_PRELOAD": FAILING, "HOLDFAST_TEST_THREAD": str(succeed)})
            line = next(l for l in process.stderr if "a call failed" in l or "waiting for" in l)
            if "waiting for" in line:
                break
            until(lambda: process.poll() is not None or self.inspect("job", url=server.url)["waiters"],
                  "it waits, or has ended")
            process.send_signal(signal.SIGTERM)
            ends.append(process.wait(timeout=10))
            self.assertIn(ends[-1], (69, 70, 78, 128 + signal.SIGTERM), process.stderr.read())
        self.assertIn("waiting for", line)
        self.assertIn(128 + signal.SIGTERM, ends)


class Output(CliTest):
    def test_output_that_cannot_be_written_is_a_failure(self):
        self.hold("job")
        config = self.path("c.toml")
        with open(config, "w") as f:
            f.write(f'[backends.a]\nurl = "{self.url}"\n')
        for args in (("list",), ("inspect", "job"), ("--json", "inspect", "job"), ("leader", "job"), ("schema",),
                     ("backends",), ("config", "show"), ("config", "check", config), ("--version",), ("--help",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([CLI, "--url", self.url, *args], env=self.env, stdout=full,
                                      stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 74, (args, done))
            self.assertIn("cannot write to standard output", done.stderr)
            closed = subprocess.run(["sh", "-c", '"$0" "$@" >&-', CLI, "--url", self.url, *args],
                                    env=self.env, stderr=subprocess.PIPE, text=True)
            self.assertEqual(closed.returncode, 74, (args, closed))
        check = self.holdfast("run", "b", "--", "sh", "-c", f'"{CLI}" check >/dev/full; echo $?')
        self.assertEqual(check.out, "74\n", check)

    def test_run_needs_no_standard_output(self):
        done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', CLI, "--url", self.url, "run", "job", "--", "true"],
                              env=self.env, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Folders(CliTest):
    def deadline_file(self, runtime):
        result = self.holdfast("run", "job", "--", "printenv", "HOLDFAST_DEADLINE_FILE",
                               env={"XDG_RUNTIME_DIR": runtime})
        self.assertEqual(result.code, 0, result)
        return result.out

    def test_a_runtime_folder_that_others_may_write_to_is_not_used(self):
        runtime = self.path("runtime")
        os.mkdir(runtime, 0o700)
        self.assertTrue(self.deadline_file(runtime).startswith(runtime + "/"))
        os.chmod(runtime, 0o777)
        self.assertTrue(self.deadline_file(runtime).startswith(self.folder + "/holdfast-"))
        if os.geteuid() == 0:  # as sudo leaves it
            os.chmod(runtime, 0o700)
            os.chown(runtime, 1, 1)
            self.assertTrue(self.deadline_file(runtime).startswith(self.folder + "/holdfast-"))

    def test_local_without_a_home_is_a_wrong_configuration(self):
        for env in ({"HOME": ""}, {"HOME": "relative"}, {"HOME": "/dev/null"}):
            result = self.holdfast("--local", "run", "job", "--", "touch", self.path("ran"), url=None, env=env)
            self.assertEqual(result.code, 78, result)
            self.assertIn("NOT acquired", result.err)
            self.assertEqual(self.holdfast("--local", "list", url=None, env=env).code, 78)

    def test_a_variable_that_names_the_backend_and_is_empty_is_refused(self):
        config = self.path(".config/holdfast")
        os.makedirs(config)
        with open(os.path.join(config, "holdfast.toml"), "w") as f:
            f.write(f'[backends.other]\nurl = "{self.url}"\n')
        for name in ("HOLDFAST_URL", "HOLDFAST_CONFIG"):
            result = self.holdfast("run", "job", "--", "touch", self.path("ran"), url=None, env={name: ""})
            self.assertEqual(result.code, 78, result)
            self.assertIn(f"{name} is set and empty", result.err)
            self.assertFalse(os.path.exists(self.path("ran")))
            self.assertEqual(self.holdfast("list", env={name: ""}).code, 0)
        self.assertEqual(self.holdfast("list", url=None).code, 0)


class Names(CliTest):
    def test_names_that_the_environment_has_no_room_for_are_refused_before_anything_is_asked(self):
        names = [f"{n:03}-" + "x" * 500 for n in range(200)]
        result = self.holdfast("run", *names, "--", "touch", self.path("ran"), url="redis://127.0.0.1:1")
        self.assertEqual(result.code, 64, result)
        self.assertIn("200 names are too many or too long", result.err)
        # Beyond what one message to the guardian could have been.
        result = self.holdfast("run", *names[:60], "--", "sh", "-c", "printenv HOLDFAST_LOCK | wc -l")
        self.assertEqual((result.code, result.out.strip()), (0, "60"), result)

    def test_a_name_with_a_line_break_is_not_one_of_several(self):
        result = self.holdfast("run", "a\nb", "c", "--", "true")
        self.assertEqual(result.code, 64, result)
        self.assertIn("has a line break", result.err)
        inner = self.holdfast("run", "a\nb", "--", CLI, "--url", self.url, "run", "b", "--", "true")
        self.assertEqual((inner.code, inner.err), (0, ""), inner)


if __name__ == "__main__":
    support.main()
