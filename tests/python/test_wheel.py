"""The wheel: built without a network, pure, typed, and enough beside the C library."""
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "core", "python")


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


class Wheel(unittest.TestCase):
    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "source")  # setuptools writes beside what it reads
            run("cp", "-r", SOURCE, copy)
            run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation",
                "--disable-pip-version-check", "-w", folder, copy)
            wheel = os.path.join(folder, "holdfast-0.1.0-py3-none-any.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
            modules = {f"holdfast/{name}" for name in os.listdir(os.path.join(SOURCE, "holdfast")) if name.endswith(".py")}
            self.assertEqual({name for name in names if not name.startswith("holdfast-0.1.0.dist-info/")},
                             modules | {"holdfast/py.typed"})
            target = os.path.join(folder, "installed")
            run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check",
                "--root-user-action", "ignore", "--target", target, wheel)
            text = "import holdfast\nwith holdfast.open('memory:').lock('a') as lease: print(lease.token)\nprint(holdfast.__file__)"
            output = run(sys.executable, "-c", text, cwd=folder, env={**os.environ, "PYTHONPATH": target})
            self.assertEqual(output, f"1\n{target}/holdfast/__init__.py\n")

    def test_without_the_library(self):
        output = subprocess.run([sys.executable, "-c", "import holdfast"], check=False, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "HOLDFAST_C_LIBRARY": "libholdfast-absent.so"})
        self.assertEqual(output.returncode, 1)
        self.assertIn("HOLDFAST_C_LIBRARY", output.stderr)

    def test_types(self):
        with tempfile.TemporaryDirectory() as cache:
            run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "holdfast", cwd=SOURCE)


if __name__ == "__main__":
    unittest.main()
