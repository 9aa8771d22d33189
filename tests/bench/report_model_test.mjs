// What the report's first screen says follows from the rows, both ways: with other rows it says the contrary, and without
// them nothing. node report_model_test.mjs TREE
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';
import { backends } from '../../bench/report/backends.mjs';

const tree = process.argv[2];
const read = (...path) => readFileSync(join(tree, ...path), 'utf8');
vm.runInThisContext(`const BACKENDS = ${JSON.stringify(backends)};`);
for (const file of ['model.js', 'pictures.js']) vm.runInThisContext(read('bench/report', file), { filename: file });
const { choicesOf, modelOf, costAgainstSafety, pauseOf, pausedOf, familyOf, CLAIM_SOURCES } =
  vm.runInThisContext('({ choicesOf, modelOf, costAgainstSafety, pauseOf, pausedOf, familyOf, CLAIM_SOURCES })');
const choices = choicesOf(backends);
const kept = read('docs/report/reference.json');

let wrong = 0;
function check(holds, what) {
  if (holds) return;
  wrong += 1;
  console.log(`wrong: ${what}`);
}
// The model of the kept run after a change of its rows.
function model(change = () => {}) {
  const report = JSON.parse(kept);
  const of = (want) => report.rows.filter((r) => Object.entries(want).every(([k, v]) => r[k] === v));
  const left = change(of, report);
  if (left) report.rows = left;
  return modelOf(report, choices);
}
const text = (m) => m.findings.join('\n');
const set = (all, value) => all.forEach((r) => { r.value = r.min = r.max = value; });
function says(part, change, what) {
  const m = model(change);
  check(part instanceof RegExp ? part.test(text(m)) : text(m).includes(part), `${what}: expected ${part} in\n${text(m)}`);
}
const p50 = (backend, variant = 'default') => ({ scenario: 'C1', metric: 'p50', backend, variant });
const without = (scenario) => (of, report) => report.rows.filter((r) => r.scenario !== scenario);

// --- findings

says('Redis that syncs every write is slower than SQLite: 900 us against 100 us',
  (of) => { set(of(p50('redis', 'durable')), 900); set(of(p50('sqlite')), 100); }, 'durable Redis, dear');
says('Redis that syncs every write is faster than SQLite', (of) => { set(of(p50('redis', 'durable')), 50); set(of(p50('sqlite')), 100); }, 'durable Redis, cheap');
says('is as fast as SQLite', (of) => { set(of(p50('redis', 'durable')), 101); set(of(p50('sqlite')), 100); }, 'durable Redis, alike');
const crash = { scenario: 'C18', metric: 'runs with two holders', variant: 'memory only, crashed, back at once' };
says('a crash of the server gave two holders in 7 of 10 runs', (of) => of(crash).forEach((r) => { r.value = 7; r.n = 10; }), 'crash');
says(/a crash of the server gave two holders in none of \d+ runs/, (of) => set(of(crash), 0), 'no crash');
says('Redlock on five nodes costs 8.0 times one Redis', (of) => { set(of(p50('redis')), 10); set(of(p50('redlock')), 80); }, 'Redlock');
says('Redlock on five nodes costs no more than one Redis', (of) => { set(of(p50('redis')), 80); set(of(p50('redlock')), 80); }, 'cheap Redlock');
const jump = { scenario: 'C15', metric: 'runs with two holders', variant: 'clock jumps ahead' };
says('clock jumped gave two holders in 3 of 4 runs', (of) => of(jump).forEach((r) => { r.value = 3; r.n = 4; }), 'clock');
says('clock jumped gave two holders in none of', (of) => set(of(jump), 0), 'no clock');
const ensemble = { scenario: 'C2', metric: 'acquire + release, p50' };
says('Three servers cost no more than one', (of) => set(of(ensemble), 500), 'consensus for nothing');
says('zookeeper 4.0 times (2.0 ms against 500 us)',
  (of) => { set(of({ ...ensemble, variant: '1 server' }), 500); set(of({ ...ensemble, variant: '3 servers' }), 2000); }, 'consensus');
// Where several servers were broken, those count and not one alone.
const alone = (of, report) => report.rows.filter((r) => !r.metric.startsWith('runs with two holders') || !/servers|members/.test(r.variant));
const killed = { scenario: 'C16', backend: 'zookeeper', metric: 'runs with two holders: SIGKILL' };
says('Two holders all the same: holder killed 1 of 3 runs',
  (of, report) => { of(killed).forEach((r) => { r.value = 1; r.n = 3; }); return alone(of, report); }, 'consensus broken');
const three = (of, report) => [...alone(of, report), ...of({ ...killed, variant: 'default' }).map((r) => ({ ...r, variant: '3 servers', n: 10 }))];
check(model(three).choices.find((c) => c.backend === 'zookeeper').evidence.text === 'none in 10 runs', 'an ensemble is judged by its own runs');
check(/on one server/.test(model(alone).choices.find((c) => c.backend === 'zookeeper').evidence.text), 'one server in the place of three is said');
const open = { scenario: 'C12', metric: 'stale writes accepted by a store without a fence' };
says(/A paused holder beats every one of \d+ locks/, (of) => set(of(open), 1), 'pauses');
says(/A paused holder beats none of \d+ locks:\*\* 0 stale writes/, (of) => set(of(open), 0), 'no stale writes');
says(/refused 18 of 19/, (of) => {
  const [refused, passed] = ['refused', 'accepted'].map((what) => of({ scenario: 'C12', metric: `stale writes ${what} by a fenced store` }));
  set([...refused, ...passed], 0);
  set([refused[0]], 18);
  set([passed[0]], 1);
}, 'a stale write passed');
// Five findings are enough: without what is said of a network there is room for polling.
const polling = (queue, poll) => (of, report) => {
  set(of({ scenario: 'C3', backend: 'redis', variant: 'default', metric: 'requests per hand-off' }), queue);
  set(of({ scenario: 'C3', backend: 'redis', variant: 'poll', metric: 'requests per hand-off' }), poll);
  return without('C32')(of, report);
};
says('Polling costs more than a queue', polling(2, 20), 'polling');
says('Polling costs no more than a queue', polling(2, 2), 'cheap polling');
// A larger crowd that one lock alone was tried with is not the one that all are compared with.
const crowd = (of, report) => [...report.rows, ...of({ scenario: 'C3', backend: 'redis', variant: 'default', metric: 'time per hand-off' })
  .map((r) => ({ ...r, x: 100000 }))];
check(model(crowd).waiters === model().waiters && model().waiters > 2, `all are compared with the same crowd: ${model(crowd).waiters}`);
// Delays of 0 and 10 ms each way; the kept run may have none.
const far = (costs) => (of, report) => [...report.rows.filter((r) => r.scenario !== 'C32'), ...Object.entries(costs).flatMap(([backend, [near, more]]) =>
  [[0, near], [10, more]].map(([x, us]) => ({ ...report.rows[0], scenario: 'C32', backend, variant: 'default', metric: 'p50', x, value: us, min: us, max: us })))];
says('Over a network all locks cost nearly the same:** with a delay of 10 ms each way 40.0 ms (redis) to 62.0 ms (etcd); the dearest takes 1.5 times the cheapest, without the delay 20 times. What counts is the number of round trips: 2.0 to 3.0.',
  far({ redis: [100, 40040], etcd: [2000, 62000], sqlite: [200, 200] }), 'a network');
says('Over a network the locks still differ in cost', far({ redis: [100, 40000], etcd: [200, 82000] }), 'a network that does not');
check(!text(model(without('C32'))).includes('network'), 'without C32 nothing is said of a network');
for (const [scenario, word] of [['C12', 'paused'], ['C2', 'Three servers'], ['C15', 'clock jumped'], ['C18', 'crash of the server']]) {
  check(!text(model(without(scenario))).includes(word), `without ${scenario} nothing is said of it`);
}
check(model((of) => of({ scenario: 'C8' })).findings.length === 0, 'a run of C8 finds nothing for the first screen');

// --- claims

const verdict = (finding) => model((of, report) => { report.verdicts.forEach((v) => { v.finding = finding; }); });
check(verdict('refuted').tally.startsWith(`0 confirmed, ${model().claims.length} refuted, `), `refuted is called refuted: ${verdict('refuted').tally}`);
check(/, none refuted, /.test(verdict('confirmed').tally), 'none refuted is said');
const size = (id, n) => model((of) => of({ scenario: id }).forEach((r) => { r.unit = `of ${n} runs`; r.n = n; })).claims.find((c) => c.id === id).size;
check(size('C9', 10) === '10 runs' && size('C9', 12) === '12 runs', 'enough runs');
check(size('C9', 2) === '2 of 10 runs', `too few runs: ${size('C9', 2)}`);
// Said by nobody in particular; every other claim names its source.
const often = ['C6', 'C8b', 'C19a', 'C20'];
for (const file of ['verdict.cpp', 'verdict_cost.cpp', 'verdict_clients.cpp', 'verdict_faults.cpp']) {
  for (const [, id] of read('bench', file).matchAll(/^ {4}\{"(C\d+[a-z]*)",/gm)) {
    check(Boolean(CLAIM_SOURCES[id]) !== often.includes(id), `${id} names its source, or is often said`);
  }
}

// --- pictures

const whole = model();
for (const r of whole.pick({ scenario: 'C1', metric: 'p50' })) check(backends[familyOf(r.backend)]?.mark, `${r.backend} has a mark`);
for (const c of whole.choices) check(costAgainstSafety(whole, 560).includes(`>${c.name}<`), `${c.name} is in the picture of cost and safety`);
check(pausedOf(whole).backend === 'zookeeper', 'the pause of the safest lock is shown');
const pause = (change) => { const m = model(change); return pauseOf(m, pausedOf(m), 560); };
check(/stale write: refused/.test(pause()) && /stale write: accepted/.test(pause()), 'a pause: accepted without a fence, refused with it');
check(/stale write: 1 accepted/.test(pause((of) => of({ scenario: 'C12', metric: 'timeline: stale write, refused by the fence' })
  .forEach((r) => { r.metric = 'timeline: stale write'; }))), 'a pause: a stale write that passes the fence is called so');
console.log(wrong ? `${wrong} wrong` : 'all right');
process.exit(wrong ? 1 : 0);
