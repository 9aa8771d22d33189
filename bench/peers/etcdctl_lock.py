"""etcdctl lock, one process for each cycle: SERVERS is a port."""
import os
import shutil
import signal
import subprocess

from peer import given, must, say, serve

etcdctl = shutil.which("etcdctl")
if etcdctl is None:
    say(missing="Debian: etcd-client")
    raise SystemExit

servers, name = given()
environment = {**os.environ, "ETCDCTL_API": "3"}
command = [etcdctl, f"--endpoints=127.0.0.1:{servers}", "lock", name]
version = subprocess.run([etcdctl, "version"], env=environment, capture_output=True, text=True,
                         check=True).stdout.split()[2]
holder = None


def acquire():
    """Returns when the process has said its key, which it does when it holds the lock."""
    global holder
    holder = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    must(holder.stdout.readline())


def release():
    """It deletes its key and ends; its lease ends later, by itself."""
    holder.send_signal(signal.SIGINT)
    must(holder.wait() == 0)
    holder.stdout.close()


serve(version, "a process for each cycle, from its start to its end after SIGINT; its default lease of 10 s",
      acquire, release)
