// npm's redlock over several nodes: SERVERS is a list of ports.
import { given, libraries, serve } from "./peer.mjs";

const [Redis, { default: Redlock }] = libraries("ioredis", "redlock");
const { ports, name } = given();
const redlock = new Redlock(ports.map((port) => new Redis(port, "127.0.0.1")));
redlock.on("error", () => {});  // it tells every vote that was refused; acquire() says what counts
let lock;
await serve("redlock", `${ports.length} nodes, duration 10000, else its defaults`,
  async () => { lock = await redlock.acquire([name], 10000); }, () => lock.release());
