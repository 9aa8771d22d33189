"""Runs a program against a backend: on.py HOLDFAST_LAB memory|sqlite|SERVER PROGRAM [ARGUMENT ...] -- it gets the URL last."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lab import Lab  # noqa: E402


def main():
    lab, kind, *command = sys.argv[1:]
    server = None
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        if kind == "memory":
            url = "memory:"
        elif kind == "sqlite":
            url = f"sqlite://{folder}/locks.db"
        else:
            server = Lab(lab, kind)
            url = server.urls[0]
        try:
            return subprocess.run([*command, url], check=False).returncode
        finally:
            if server:
                server.close()


if __name__ == "__main__":
    sys.exit(main())
