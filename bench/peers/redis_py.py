"""redis-py's own Lock: SERVERS is a port."""
from peer import given, must, say, serve

try:
    import redis
    from redis.lock import Lock
except ImportError:
    say(missing="Debian: python3-redis")
    raise SystemExit from None

servers, name = given()
lock = Lock(redis.Redis(host="127.0.0.1", port=int(servers)), name, timeout=10)
try:
    parser = "hiredis " + __import__("hiredis").__version__
except ImportError:
    parser = "its own parser"
serve(redis.__version__, f"one Lock for all cycles, timeout=10, {parser}",
      lambda: must(lock.acquire()), lock.release)
