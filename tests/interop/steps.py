"""Holders and waiters that a test leads step by step, each a process that answers a line with a line."""
import queue
import re
import subprocess
import threading

CAP = 60  # seconds; for an answer
QUIET = 0.7  # how long somebody has to stay a waiter


class Actor:
    """One of them. `name` is what the witness knows it by."""

    def __init__(self, name, *command):
        self.name, self.answers = name, queue.Queue()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(line.strip())

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def answer(self):
        return self.answers.get(timeout=CAP)

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def waits(self):
        """It has not answered yet, and does not for a while."""
        try:
            return self.answers.get(timeout=QUIET) is None
        except queue.Empty:
            return True

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Witness:
    """Looks from outside at who is in, and at the line of a name: whoever is in and does not stand where it may be."""

    def __init__(self, client, name):
        self.client, self.parent, self.inside = client, "/holdfast/" + name, {}

    def line(self):
        """Who stands there, as the nodes say, and whether as a reader; in the order of their numbers."""
        nodes = []
        for node in self.client.get_children(self.parent):
            match = re.search(r"__(WRIT|READ)__(\d{10})$", node)
            if match:
                data = self.client.get(self.parent + "/" + node)[0].decode()
                ours = data.startswith("hf1 ")
                reads = match.group(1) == "READ" or (ours and "shared" in data.split())
                nodes.append((int(match.group(2)), "ours" if ours else data, reads))
        return [(who, reads) for _, who, reads in sorted(nodes)]

    def enters(self, who, reads):
        """From now on it works there."""
        self.inside[who] = reads

    def leaves(self, who):
        del self.inside[who]

    def blames(self):
        """Those who are in together and may not be: none where all read, else who has no right by the line."""
        if len(self.inside) < 2 or all(self.inside.values()):
            return set()
        line = self.line()
        rightful = line[:1]
        if rightful and rightful[0][1]:
            writers = [at for at, (_, reads) in enumerate(line) if not reads]
            rightful = line[:writers[0]] if writers else line
        return {who for who, reads in self.inside.items() if (who, reads) not in rightful}
