#!/usr/bin/env python3
"""The bench on the user's own server, by a holdfast.toml: it measures, removes what it left there, and ^C
ends it with a report of what there is, marked as partial.

usage: own_servers.py BENCH LAB FOLDER
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

import redis


def main(bench, lab, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen([lab, "redis"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    try:
        url = next(line.strip() for line in server.stdout if line.startswith("redis://"))
        config = folder / "own.toml"
        config.write_text(f'[backends.cache]\nurl = "{url}"\n')
        os.chmod(config, 0o600)
        whole, part = folder / "whole.json", folder / "part.json"
        for file in (whole, part):
            file.unlink(missing_ok=True)
        keys = redis.Redis.from_url(url)
        keys.set("not-ours", "stays")
        command = [bench, "--quick", "--seed", "1", "--config", config, "--backend", "cache", "--scenario", "C1"]

        done = subprocess.run([*command, "--json", whole], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=180)
        report = json.loads(whole.read_text())
        assert done.returncode == 0, done.stdout
        assert not report["partial"], "a whole run is marked as partial"
        assert any(r["scenario"] == "C1" and r["backend"] == "redis" and r["value"] > 0
                   for r in report["rows"]), report["rows"]
        assert url not in whole.read_text() or "@" not in url
        assert keys.keys("*") == [b"not-ours"], f"left behind: {keys.keys('*')}"

        running = subprocess.Popen([*command, "--json", part], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        # Its locks are at the server: it is at work.
        while not keys.keys("*holdfast-bench-*"):
            assert running.poll() is None, "it ended before it had begun"
        running.send_signal(signal.SIGINT)
        words, _ = running.communicate(timeout=60)
        report = json.loads(part.read_text())
        assert report["partial"], words
        assert running.returncode in (0, 1), words
        assert keys.keys("*") == [b"not-ours"], f"left behind after ^C: {keys.keys('*')}"
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
