"""kazoo's own Lock: SERVERS is a connect string."""
from peer import given, must, say, serve

try:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock
    from kazoo.version import __version__
except ImportError:
    say(missing="Debian: python3-kazoo")
    raise SystemExit from None

servers, name = given()
client = KazooClient(hosts=servers, timeout=10.0)
try:
    client.start(timeout=15)
    lock = Lock(client, name, "peer")
    serve(__version__, "one Lock for all cycles, session timeout 10 s asked for, threading handler",
          lambda: must(lock.acquire(timeout=30)), lock.release)
finally:
    client.stop()
