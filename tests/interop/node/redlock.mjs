// npm's redlock over several nodes: SERVERS is a list of ports.
import { given, library, pause, Redis } from "./witness.mjs";

const { ports, witness, name, rounds } = given();
const { default: Redlock, ExecutionError } = library("redlock");
const clients = ports.map((port) => new Redis(port, "127.0.0.1"));
// The library keeps the votes it has for as long as it tries, and gives them back when it gives up:
// three clients with two, two and one could keep each other out for minutes. So it gives up soon,
// and is asked again.
const redlock = new Redlock(clients, { retryCount: 2, retryDelay: 60, retryJitter: 50 });
redlock.on("error", () => {});  // it tells every vote that was refused; acquire() says what counts
const acquire = async () => {
  for (const end = Date.now() + 60000; ; await pause(60 * Math.random())) {
    try {
      return await redlock.acquire([name], 3000);
    } catch (e) {
      if (!(e instanceof ExecutionError) || Date.now() > end) throw e;
    }
  }
};
for (let i = 0; i < rounds; ++i) {
  const lock = await acquire();
  await witness.work(1);
  await lock.release();
  // Everybody polls: who asks again at once keeps the others out for long.
  await pause(20 * Math.random());
}
process.exit(0);
