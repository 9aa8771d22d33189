// npm's redlock over several nodes: SERVERS is a list of ports.
import { given, library, Redis } from "./witness.mjs";

const { ports, witness, name, rounds } = given();
const { default: Redlock } = library("redlock");
const clients = ports.map((port) => new Redis(port));
// Wide pauses: rounds that collide on a majority help nobody.
const redlock = new Redlock(clients, { retryCount: 2000, retryDelay: 25, retryJitter: 20 });
redlock.on("error", () => {});  // it tells every vote that was refused; acquire() says what counts
for (let i = 0; i < rounds; ++i) {
  const lock = await redlock.acquire([name], 1000);
  await witness.work();
  await lock.release();
}
process.exit(0);
