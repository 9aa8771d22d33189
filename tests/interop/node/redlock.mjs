// npm's redlock over several nodes: SERVERS is a list of ports.
import { given, library, pause, Redis } from "./witness.mjs";

const { ports, witness, name, rounds } = given();
const { default: Redlock } = library("redlock");
const clients = ports.map((port) => new Redis(port, "127.0.0.1"));
// Who asks while others ask splits the votes: pauses are long against a round, on a busy machine too.
const redlock = new Redlock(clients, { retryCount: 2000, retryDelay: 60, retryJitter: 50 });
redlock.on("error", () => {});  // it tells every vote that was refused; acquire() says what counts
for (let i = 0; i < rounds; ++i) {
  const lock = await redlock.acquire([name], 1000);
  await witness.work(1);
  await lock.release();
  // Everybody polls: who asks again at once keeps the others out for long.
  await pause(20 * Math.random());
}
process.exit(0);
