// node orders.mjs URL NAME COUNT: does a job COUNT times, each time under the lock.
import { Client } from './holdfast.mjs';

const [url, name, count] = process.argv.slice(2);
const client = new Client(url);
for (let n = 0; n < Number(count); ++n) {
    // With Node 24: await using lease = await client.lock(name, { wait: 30 });
    const lease = await client.lock(name, { wait: 30 });
    try {
        console.log(`${process.pid} begins with token ${lease.token}`);
        await new Promise((done) => setTimeout(done, 5));
        console.log(`${process.pid} ends ${lease.valid ? 'in time' : 'too late'}`);
    } finally {
        await lease.release();
    }
}
await client.lock(name).then(async (lease) => {
    await client.lock(name, { wait: 1 }).catch((error) => console.log(`${error.name}, code ${error.code}`));
    await lease[Symbol.asyncDispose]();
});
client.close();
