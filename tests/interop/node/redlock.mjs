// npm's redlock over several nodes: SERVERS is a list of ports.
import { given, library, pause, Redis } from "./witness.mjs";

const { ports, witness, name, rounds } = given();
const { default: Redlock } = library("redlock");
const clients = ports.map((port) => new Redis(port));
const redlock = new Redlock(clients, { retryCount: 6000, retryDelay: 10, retryJitter: 8 });
redlock.on("error", () => {});  // it tells every vote that was refused; acquire() says what counts
for (let i = 0; i < rounds; ++i) {
  const lock = await redlock.acquire([name], 1000);
  await witness.work(1);
  await lock.release();
  // Everybody polls: who asks again at once keeps the others out for long.
  await pause(10 * Math.random());
}
process.exit(0);
