"""python-etcd3's own Lock: SERVERS is a port."""
from peer import given, must, say, serve

try:
    import etcd3
except ImportError:
    say(missing="Debian: python3-etcd3")
    raise SystemExit from None

servers, name = given()
lock = etcd3.client(host="127.0.0.1", port=int(servers)).lock(name, ttl=10)
serve(etcd3.__version__, "one Lock for all cycles, ttl=10; gRPC, another lease for each cycle",
      lambda: must(lock.acquire()), lambda: must(lock.release()))
