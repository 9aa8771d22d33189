// What every peer from npm does between its library and the bench; see ../README.md for the words.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);
export const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");

/// The libraries; ends the program when one is not there.
export const libraries = (...names) => {
  try {
    return names.map((name) => require(name));
  } catch (e) {
    if (e.code !== "MODULE_NOT_FOUND") throw e;
    say({ missing: "npm modules, brought by bench/run --peers" });
    process.exit(0);
  }
};

export const version = (name) =>
  JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version;

// SERVERS NAME: a list of ports.
export const given = () => {
  const [servers, name] = process.argv.slice(2);
  return { ports: servers.split(",").map(Number), name };
};

const block = async (seconds, acquire, release) => {
  const times = [];
  let before = process.hrtime.bigint();
  const end = before + BigInt(Math.round(1e9 * seconds));
  while (before < end) {
    await acquire();
    await release();
    const after = process.hrtime.bigint();
    times.push(Number(after - before) / 1e3);
    before = after;
  }
  return times;
};

// Does what the bench says until it says no more.
export const serve = async (name, settings, acquire, release) => {
  say({ version: version(name), settings: `${settings}; ioredis ${version("ioredis")}, node ${process.versions.node}` });
  for await (const line of createInterface({ input: process.stdin })) {
    const [word, seconds] = line.split(" ");
    try {
      if (word === "block") say({ us: await block(Number(seconds), acquire, release) });
      else if (word === "hold") {
        await acquire();
        say({ held: true });
      } else {
        await release();
        say({ held: false });
      }
    } catch (e) {
      say({ failed: `${e.name}: ${e.message}` });
      break;
    }
  }
  process.exit(0);
};
