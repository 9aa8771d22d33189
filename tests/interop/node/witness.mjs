// What every client from npm does while it holds: the witness, and a counter in two steps. See witness.py.
import { readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(process.env.HOLDFAST_INTEROP_MODULES + "/");
export const Redis = require("ioredis");
export const library = (name) => require(name);

const lives = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Witness {
  constructor(storePort, folder) {
    this.store = new Redis(Number(storePort), "127.0.0.1");
    this.path = join(folder, "witness");
  }

  enter() {
    const me = String(process.pid);
    try {
      symlinkSync(me, this.path);
      return true;
    } catch (e) {
      if (e.code !== "EEXIST") throw e;
    }
    try {
      if (lives(Number(readlinkSync(this.path)))) return false;
      unlinkSync(this.path);
      symlinkSync(me, this.path);
      return true;
    } catch (e) {
      if (e.code !== "ENOENT" && e.code !== "EEXIST") throw e;
      return false;
    }
  }

  // `ms`: how long the work itself takes.
  async work(ms = 0) {
    if (!this.enter()) await this.store.incr("overlaps");
    const n = Number((await this.store.get("counter")) ?? 0);
    if (ms > 0) await pause(ms);
    await this.store.eval(
      "redis.call('SET','counter',ARGV[1]) redis.call('INCR','done') redis.call('INCR','foreign')",
      0, n + 1);
    try {
      unlinkSync(this.path);
    } catch (e) {
      if (e.code !== "ENOENT") throw e;
    }
  }
}

// SERVERS STORE-PORT NAME FOLDER ROUNDS, as tests/interop/contention.py gives them.
export function given() {
  const [servers, storePort, name, folder, rounds] = process.argv.slice(2);
  return { ports: servers.split(",").map(Number), witness: new Witness(storePort, folder), name,
           rounds: Number(rounds) };
}
