// Holdfast for Node, by koffi over libholdfast-c: copy it and add what you need.
//
//   await using lease = await client.lock('orders', { ttl: 10, wait: 5 });   // Node 24
//
// One thread of libuv's pool waits for the queue's descriptor while calls are under way.
import koffi from 'koffi';

const library = koffi.load(process.env.HOLDFAST_C_LIBRARY ?? 'libholdfast-c.so.1');
const libc = koffi.load('libc.so.6');

koffi.struct('hf_error', { size: 'uint32', code: 'int32', native: 'int32', message: koffi.array('char', 1024, 'String') });
koffi.struct('hf_lock_options', {
    size: 'uint32', kind: 'int32', limit: 'uint32', no_renewal: 'int32', ttl: 'int64', max_hold: 'int64',
    lock_delay: 'int64', min_hold: 'int64',
});
koffi.struct('hf_acquire_options', { size: 'uint32', shared: 'int32', permits: 'uint32', wait: 'int64', note: 'const char*' });
koffi.struct('hf_event', { size: 'uint32', call: 'uint64', lease: 'void*', error: 'hf_error' });
koffi.struct('hf_facts', {
    size: 'uint32', state: 'int32', previous: 'int32', reason: 'int32', shared: 'int32', permits: 'uint32', asked: 'int32',
    left: 'int64', token: 'uint64', owner: koffi.array('char', 513, 'String'),
});
koffi.struct('pollfd', { fd: 'int', events: 'short', revents: 'short' });

const c = Object.fromEntries([
    'int hf_open(const char*, void*, _Out_ void**, _Inout_ hf_error*)', 'void hf_client_free(void*)',
    'int hf_lock_new(void*, const char*, hf_lock_options*, _Out_ void**, _Inout_ hf_error*)', 'void hf_lock_free(void*)',
    'int hf_queue_new(_Out_ void**, _Inout_ hf_error*)', 'int hf_queue_fd(void*)',
    'int hf_queue_next(void*, _Inout_ hf_event*)', 'void hf_queue_free(void*)',
    'int hf_acquire_start(void*, hf_acquire_options*, void*, _Out_ uint64*, _Inout_ hf_error*)',
    'int hf_lease_start(void*, int, void*, _Out_ uint64*, _Inout_ hf_error*)',
    'int hf_lease_valid(void*)', 'int hf_lease_look(void*, size_t, _Inout_ hf_facts*, _Inout_ hf_error*)',
    'void hf_lease_free(void*)',
].map((prototype) => [prototype.match(/hf_\w+/)[0], library.func(prototype)]));
const poll = libc.func('int poll(_Inout_ pollfd*, ulong, int)');
const POLLIN = 1, RENEW = 1, RELEASE = 3, ABANDON = 4, WATCH = 5, NOT_HELD = 9;
const FOREVER = 2n ** 63n - 1n;

export class HoldfastError extends Error {
    constructor({ code, message }) {
        super(message);
        this.name = { 1: 'Contended', 2: 'TimedOut', 4: 'Unavailable', 7: 'Lost', 8: 'Revoked' }[code] ?? 'HoldfastError';
        this.code = code;
    }
}

const newError = () => ({ size: koffi.sizeof('hf_error'), code: 0, native: 0, message: '' });
const milliseconds = (seconds) => (seconds === undefined ? FOREVER : BigInt(Math.ceil(seconds * 1000)));

/** Calls a function of holdfast.h, whose last argument is an error. */
function check(name, ...args) {
    const error = newError();
    if (c[name](...args, error) !== 0) throw new HoldfastError(error);
}

/** Answers of calls that do not block, as promises. */
class Queue {
    #handle;
    #waiting = new Map();
    #watching = false;

    constructor() {
        const out = [null];
        check('hf_queue_new', out);
        this.#handle = out[0];
    }
    /** `begin(queue, call)` starts the call. The lease of its answer. */
    start(begin) {
        const call = [0];
        begin(this.#handle, call);
        return new Promise((resolve, reject) => {
            this.#waiting.set(String(call[0]), { resolve, reject });
            if (!this.#watching) this.#watch();
        });
    }
    #watch() {
        this.#watching = this.#waiting.size > 0;
        if (!this.#watching) return;
        const readable = { fd: c.hf_queue_fd(this.#handle), events: POLLIN, revents: 0 };
        poll.async(readable, 1, -1, () => { this.#take(); this.#watch(); });
    }
    #take() {
        const event = { size: koffi.sizeof('hf_event'), call: 0, lease: null, error: newError() };
        while (c.hf_queue_next(this.#handle, event) === 1) {
            const { resolve, reject } = this.#waiting.get(String(event.call));
            this.#waiting.delete(String(event.call));
            if (event.error.code === 0) resolve(event.lease);
            else reject(new HoldfastError(event.error));
        }
    }
}

export class Lease {
    #handle;
    #queue;
    #released = false;
    constructor(handle, queue) {
        this.#handle = handle;
        this.#queue = queue;
    }
    get valid() { return c.hf_lease_valid(this.#handle) === 1; }
    /** The fencing token: a BigInt. */
    get token() {
        const facts = { size: koffi.sizeof('hf_facts'), owner: '' };
        for (const name of ['state', 'previous', 'reason', 'shared', 'permits', 'asked', 'left', 'token']) facts[name] = 0;
        check('hf_lease_look', this.#handle, 0, facts);
        return BigInt(facts.token);
    }
    #start(what) {
        return this.#queue.start((queue, call) => check('hf_lease_start', this.#handle, what, queue, call));
    }
    renew() { return this.#start(RENEW); }
    /** Resolves to the reason when the lease is lost, and to nothing when it is released. */
    lost() {
        return this.#start(WATCH).catch((reason) => (reason.code === NOT_HELD ? undefined : reason));
    }
    async release({ abandoned = false } = {}) {
        if (this.#released) return;
        this.#released = true;
        await this.#start(abandoned ? ABANDON : RELEASE);
    }
    async [Symbol.asyncDispose]() { await this.release(); }
}

export class Client {
    #handle;
    #queue = new Queue();
    constructor(url) {
        const out = [null];
        check('hf_open', url, null, out);
        this.#handle = out[0];
    }
    /** Waits for the lock; times are in seconds. */
    async lock(name, { ttl = 0, wait, note = null } = {}) {
        const out = [null];
        check('hf_lock_new', this.#handle, name, {
            size: koffi.sizeof('hf_lock_options'), kind: 0, limit: 1, no_renewal: 0, ttl: milliseconds(ttl), max_hold: 0,
            lock_delay: 0, min_hold: 0,
        }, out);
        const options = { size: koffi.sizeof('hf_acquire_options'), shared: 0, permits: 1, wait: milliseconds(wait), note };
        try {
            const lease = await this.#queue.start((queue, call) => check('hf_acquire_start', out[0], options, queue, call));
            return new Lease(lease, this.#queue);
        } finally {
            c.hf_lock_free(out[0]);
        }
    }
    close() {
        c.hf_client_free(this.#handle);
        this.#handle = null;
    }
}
