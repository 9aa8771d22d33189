// redis-semaphore's Mutex, whose keys begin with "mutex:": SERVERS is a port.
import { given, library, Redis } from "./witness.mjs";

const { ports, witness, name, rounds } = given();
const { Mutex } = library("redis-semaphore");
const client = new Redis(ports[0], "127.0.0.1");
for (let i = 0; i < rounds; ++i) {
  const mutex = new Mutex(client, name, { lockTimeout: 3000, acquireTimeout: 60000, retryInterval: 2 });
  await mutex.acquire();
  await witness.work();
  await mutex.release();
}
process.exit(0);
