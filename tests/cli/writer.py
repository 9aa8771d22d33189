"""The command that must be stopped: ignores SIGTERM, has a grandchild in a session of its own that
does the same, and both write the boot clock to a file as long as they live."""
import os
import signal
import sys
import time


def write(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        os.write(fd, f"{os.getpid()} {now}\n".encode())
        time.sleep(0.002)


signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 2 and sys.argv[2] == "--alone":
    write(sys.argv[1])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        write(sys.argv[1])
    os._exit(0)
os.wait()
write(sys.argv[1])
