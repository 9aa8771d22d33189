"""`run --metrics FILE`: what the file says while a run waits, holds, loses and ends."""
import os
import re
import signal
import stat

import support
from support import CliTest, until

SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$', re.MULTILINE)


def samples(path):
    """{"name": value}, or {'name{reason="x"}': value}; the labels of the run itself left out. Fails on a text that
    is not whole."""
    with open(path) as f:
        text = f.read()
    assert text.endswith("\n# EOF\n"), text
    found = {}
    for name, labels, value in SAMPLE.findall(text):
        rest = [x for x in labels.split(",") if not x.startswith(("backend=", "run="))]
        found[name + ("{" + ",".join(rest) + "}" if rest else "")] = float(value)
    return found


class Metrics(CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.path("nightly.prom")

    def shows(self, name, value):
        until(lambda: samples(self.file).get(name) == value, f"{name} {value}")

    def folder_is_clean(self):
        left = [f for f in os.listdir(self.folder) if f.startswith("nightly.prom.")]
        self.assertEqual(left, [])

    def test_a_run_from_its_wait_to_its_end(self):
        holder = self.hold("job")
        process = self.start("run", "--metrics", self.file, "job", "--", "sleep", "1000")
        until(lambda: os.path.exists(self.file), "the file is there while the run waits")
        self.shows("holdfast_waiting", 1)
        self.assertEqual(samples(self.file)["holdfast_acquired_total"], 0)
        holder.send_signal(signal.SIGTERM)
        self.until_running(process)
        self.shows("holdfast_held", 1)
        seen = samples(self.file)
        self.assertEqual((seen["holdfast_waiting"], seen["holdfast_acquired_total"]), (0, 1))
        self.assertEqual(seen["holdfast_wait_seconds_count"], 1)
        self.assertGreater(seen["holdfast_wait_seconds_sum"], 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.CAP), 128 + signal.SIGTERM)
        seen = samples(self.file)
        self.assertEqual((seen["holdfast_held"], seen["holdfast_released_total"]), (0, 1))
        self.assertEqual(seen["holdfast_hold_seconds_count"], 1)
        self.assertEqual(seen['holdfast_hold_seconds_bucket{le="+Inf"}'], 1)
        self.folder_is_clean()

    def test_labels_are_the_backend_and_the_files_name(self):
        for args in (("run", "job"), ("elect", "job")):
            result = self.holdfast(args[0], "--metrics", self.file, args[1], "--", "true")
            self.assertEqual((result.code, result.err), (0, ""), result)
            with open(self.file) as f:
                text = f.read()
            self.assertIn('holdfast_acquired_total{backend="sqlite",run="nightly"} 1\n', text)
            self.assertNotIn("job", text)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode) & 0o444, 0o444)
        self.folder_is_clean()

    def test_on_this_machine_alone(self):
        result = self.holdfast("--local", "run", "--metrics", self.file, "job", "--", "true", url=None)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(samples(self.file)["holdfast_released_total"], 1)

    def test_a_loss_and_its_reason(self):
        process = self.hold("job", "--ttl", "2s", "--metrics", self.file)
        broken = self.holdfast("break", "--force", "job")
        self.assertEqual(broken.code, 0, broken)
        self.assertEqual(process.wait(support.CAP), 76)
        seen = samples(self.file)
        self.assertEqual(seen['holdfast_lost_total{reason="revoked"}'], 1)
        self.assertEqual(sum(v for k, v in seen.items() if k.startswith("holdfast_lost_total")), 1)
        self.assertEqual(seen["holdfast_held"], 0)

    def test_not_acquired(self):
        self.hold("job")
        result = self.holdfast("run", "-n", "--metrics", self.file, "job", "--", "true")
        self.assertEqual(result.code, 75, result)
        self.assertEqual(samples(self.file)["holdfast_contended_total"], 1)

    def test_a_file_that_cannot_be_written_is_refused_before_anything_happens(self):
        """The lock is held: a run that asked for it would wait."""
        self.hold("job")
        os.mkdir(self.file)
        os.symlink("elsewhere", self.path("link"))
        for path, why in ((self.file, "not a regular file"), ("/dev/null", "not a regular file"),
                          (self.path("link"), "not a regular file"),
                          (self.path("absent/x.prom"), "No such file or directory"),
                          ("/proc/x.prom", "No such file or directory")):
            result = self.holdfast("run", "--metrics", path, "job", "--", "touch", self.path("ran"))
            self.assertEqual(result.code, 78, result)
            self.assertIn(f'cannot write --metrics "{path}": {why}', result.err.replace(" it is ", " "))
            self.assertIn("NOT acquired", result.err)
        self.assertFalse(os.path.exists(self.path("ran")))
        result = self.holdfast("run", "--metrics", "", "job", "--", "true")
        self.assertEqual(result.code, 64, result)
        self.assertIn("--metrics is given and empty", result.err)

    def test_a_file_that_cannot_be_written_any_more_is_a_warning(self):
        os.mkdir(self.path("folder"))
        file = self.path("folder/x.prom")
        process = self.hold("job", "--ttl", "1s", "--metrics", file)
        os.unlink(file)
        os.rmdir(self.path("folder"))
        line = process.stderr.readline()  # at the latest with the next renewal
        self.assertIn(f'cannot write --metrics "{file}": No such file or directory', line)
        os.mkdir(self.path("folder"))
        until(lambda: os.path.exists(file), "it is written again")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.CAP), 128 + signal.SIGTERM)
        self.assertNotIn("cannot write", process.stderr.read())
        self.assertEqual(samples(file)["holdfast_held"], 0)


if __name__ == "__main__":
    support.main()
