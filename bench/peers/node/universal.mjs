// redlock-universal's lock at one server: SERVERS is a port. The library asks for Node.js 22; it runs on 20.
import { given, libraries, say, serve } from "./peer.mjs";

if (Number(process.versions.node.split(".")[0]) < 20) {
  say({ missing: "Node.js 20 or newer" });
  process.exit(0);
}
const [Redis, { createLock, IoredisAdapter }] = libraries("ioredis", "redlock-universal");
const { ports, name } = given();
const adapter = new IoredisAdapter(new Redis(ports[0], "127.0.0.1"));
const lock = createLock({ adapter, key: name, ttl: 10000 });
let handle;
await serve("redlock-universal", "one lock for all cycles, ttl 10000, else its defaults",
  async () => { handle = await lock.acquire(); }, () => lock.release(handle));
