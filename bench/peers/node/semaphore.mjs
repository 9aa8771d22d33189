// redis-semaphore's Mutex, whose keys begin with "mutex:": SERVERS is a port.
import { given, libraries, serve } from "./peer.mjs";

const [Redis, { Mutex }] = libraries("ioredis", "redis-semaphore");
const { ports, name } = given();
const client = new Redis(ports[0], "127.0.0.1");
const mutex = new Mutex(client, name, { lockTimeout: 10000 });
await serve("redis-semaphore", "one Mutex for all cycles, lockTimeout 10000, renewal as by default",
  () => mutex.acquire(), () => mutex.release());
