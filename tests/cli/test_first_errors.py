"""The first errors that a new user meets, word for word: what happened, which server, what to do."""
import json
import os
import re
import socket
import time

import support
from support import HERE, CliTest


class FirstErrors(CliTest):
    def check(self, golden, code, *args, url, hide=(), cli=support.CLI):
        began = time.monotonic()
        result = self.holdfast("run", *args, "--", "touch", self.path("ran"), url=url, cli=cli)
        took = time.monotonic() - began
        text = result.err
        for what, name in hide:
            text = text.replace(what, name)
        text = re.sub(r"after \d+(\.\d+)? m?s", "after TIME", text)
        text = text.replace(self.folder, "FOLDER") + f"exit {result.code}\n"
        path = os.path.join(HERE, "golden", golden + ".txt")
        if os.environ.get("HOLDFAST_UPDATE_GOLDEN"):
            with open(path, "w") as f:
                f.write(text)
        with open(path) as f:
            self.assertEqual(text, f.read())
        self.assertEqual(result.code, code)
        self.assertLess(took, 5)
        self.assertEqual(result.out, "")
        self.assertIn("NOT acquired", text)
        self.assertFalse(os.path.exists(self.path("ran")))
        # Nothing half made: no database, no folder, no file.
        self.assertEqual(os.listdir(self.folder), [])

    def test_refused(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
            port = s.getsockname()[1]
            self.check("refused", 69, "nightly", url=f"redis://127.0.0.1:{port}",
                       hide=[(str(port), "PORT")])

    def test_unresolvable(self):
        self.check("unresolvable", 69, "nightly", url="redis://no-such-host.invalid:6379")

    def test_wrong_password(self):
        server = support.Redis("--password=the-right-one")
        self.addCleanup(server.close)
        port = server.url.rsplit(":", 1)[1].rstrip("/")
        url = server.url.replace("the-right-one", "wrong")
        self.check("wrong_password", 77, "nightly", url=url, hide=[(port, "PORT")])

    def test_out_of_memory(self):
        # The server runs, and says what is wrong with it.
        server = support.Redis()
        self.addCleanup(server.close)
        port = server.url.rsplit(":", 1)[1].rstrip("/")
        with socket.create_connection(("127.0.0.1", int(port))) as s:
            s.sendall(b"CONFIG SET maxmemory 1\r\n")
            self.assertEqual(s.recv(100), b"+OK\r\n")
        self.check("out_of_memory", 69, "-n", "nightly", url=server.url, hide=[(port, "PORT")])

    def test_unknown_scheme(self):
        said = json.loads(self.holdfast("--json", "backends", url=None).out)
        schemes = sorted(s for b in said["backends"] for s in b["schemes"])
        self.check("unknown_scheme", 78, "nightly", url="reddis://cache1:6379",
                   hide=[(f"Linked in: {', '.join(schemes)}.", "Linked in: SCHEMES.")])

    def test_backend_not_built_in(self):
        # A backend of Holdfast's that this command was built without.
        self.check("not_built_in", 78, "nightly", url="redis://cache1:6379",
                   cli=os.environ["HOLDFAST_CLI_FEW"])

    def test_reserved_name(self):
        self.check("reserved_name", 65, "{a}:hf:s", url="redis://127.0.0.1:1")

    def test_name_too_long(self):
        self.check("name_too_long", 65, "n" * 513, url="redis://127.0.0.1:1")


if __name__ == "__main__":
    support.main()
