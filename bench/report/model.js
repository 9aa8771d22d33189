// What the report says of one run: the choices, the faults that gave two holders, the findings, the claims. Every figure
// is from the run's rows; what the rows do not show is not said. The page and docs/report/README.md share it.
// Which lock for which need, in the order of the needs.
const choicesOf = (backends) => Object.entries(backends)
  .flatMap(([backend, { choices }]) => choices.map((choice) => ({ backend, ...choice })))
  .sort((a, b) => a.rank - b.rank);

function modelOf(report, choices) {
  const rows = report.rows;
  const label = (r) => (r.variant && r.variant !== 'default' ? `${r.backend} ${r.variant}` : r.backend);
  const isFloor = (r) => r.variant.startsWith('floor:');
  const pick = (want) => rows.filter((r) => Object.entries(want).every(([k, v]) => r[k] === v));
  const one = (want) => pick(want)[0];
  const sum = (all, of) => all.reduce((total, r) => total + of(r), 0);
  const largest = (all) => (all.length ? Math.max(...all) : undefined);

  const short = (v) => {
    if (v === undefined || v === null || Number.isNaN(v)) return '–';
    if (v !== 0 && Math.abs(v) < 0.01) return v.toExponential(0);
    const digits = v === 0 || Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2;
    return v.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: 0 });
  };
  // As in the README: 0.5 us, 34 us, 2.0 ms; 2.0, 75.
  const time = (us) => (us < 10 ? `${us.toFixed(1)} us` : us < 1000 ? `${us.toFixed(0)} us` : `${(us / 1000).toFixed(1)} ms`);
  const plain = (n) => (n < 10 ? n.toFixed(1) : n.toFixed(0));
  const times = (ratio) => `${plain(ratio)} times`;
  const several = (n, what) => `${short(n)} ${what}${n === 1 ? '' : 's'}`;
  const list = (words) => (words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`);

  // --- two holders, by fault

  const twoHolders = 'runs with two holders';
  const withServers = (r) => /\b[2-9] (servers|members)\b/.test(r.variant);
  function faultOf(r) {
    const after = r.metric.slice(twoHolders.length).replace(/^: /, '');
    const said = { SIGKILL: 'holder killed', SIGSTOP: 'holder paused', 'network cut': 'holder cut off' }[after];
    if (said) return said;
    const variant = r.variant.replace(/\b[1-9] (server|member)s?,? ?/, '');
    if (r.scenario === 'C17') return 'slow network';
    if (r.scenario === 'C13') return /^cut/.test(variant) ? 'failover' : '';
    if (r.scenario === 'C18b') {
      return /^(asynchronous|semi)/.test(variant) ? 'asynchronous failover' : /cut/.test(variant) ? 'synchronous failover' : '';
    }
    if (r.scenario === 'C15') {
      if (/^no fault/.test(variant)) return '';
      return /clock/.test(variant) ? 'clock jump' : /^emptied/.test(variant) ? 'emptied node' : variant;
    }
    if (r.scenario === 'C18a') {
      return /killed/.test(variant) ? 'one server killed' : /silent/.test(variant) ? 'one server silent' : 'one clock jumps';
    }
    if (/hung/.test(variant)) return 'server hung';
    if (/^(durable, |memory only, )?crashed/.test(variant)) return 'server crash';
    return after || variant;
  }
  // Whether a row of a fault is about this choice. A replica that takes over lacks the same grants whether a person, a
  // Sentinel or a cluster chose it. The durable Redis has no replica, so no failover.
  function isAbout(r, choice) {
    if (r.scenario === 'C13' && choice.variant === 'default') return r.backend === choice.backend.split('-')[0];
    if (r.backend !== choice.backend || ['plain', 'poll', 'no token'].includes(r.variant)) return false;
    const durable = /^durable/.test(r.variant);
    return choice.backend !== 'redis' || durable === (choice.variant === 'durable');
  }
  // The worst set-up of each fault: {fault, two, runs}. Of several servers where those were broken, else of one.
  function seen(choice) {
    const all = ['C13', 'C15', 'C16', 'C17', 'C18', 'C18a', 'C18b'].flatMap((scenario) => pick({ scenario }))
      .filter((r) => r.metric.startsWith(twoHolders) && isAbout(r, choice));
    const ensemble = /servers/.test(choice.variant);
    const broken = all.filter((r) => withServers(r) === ensemble);
    const faults = new Map();
    for (const r of broken.length ? broken : all) {
      const fault = faultOf(r);
      const worst = faults.get(fault);
      if (fault && (!worst || r.value / r.n > worst.two / worst.runs)) faults.set(fault, { fault, two: r.value, runs: r.n });
      else if (fault && r.value === 0 && worst.two === 0) worst.runs += r.n;
    }
    const each = [...faults.values()];
    return { each, caught: each.filter((f) => f.two > 0), runs: sum(each, (f) => f.runs),
      alone: ensemble && broken.length === 0 && all.length > 0 };
  }
  // "server crash 1 of 1, failover 1 of 1"; "none in 15 runs"
  function evidence(found) {
    if (found.each.length === 0) return { text: 'not tried here', tone: 'none' };
    if (found.caught.length === 0) {
      return { text: `none in ${several(found.runs, 'run')}${found.alone ? ' on one server' : ''}`, tone: 'good' };
    }
    return { text: found.caught.map((f) => `${f.fault} ${short(f.two)} of ${short(f.runs)}`).join(', '), tone: 'bad' };
  }

  // --- the table of choices

  // The crowd that most locks were tried with; the largest of these.
  const crowds = pick({ scenario: 'C3', metric: 'time per hand-off' }).map((r) => r.x);
  const tried = (x) => crowds.filter((other) => other === x).length;
  const waiters = [...crowds].sort((a, b) => tried(b) - tried(a) || b - a)[0];
  const chosen = choices.map((choice) => {
    const [scenario, variant, metric, x, backend = choice.backend] = choice.cost;
    const cost = one({ scenario, backend, variant, metric, x });
    const handOff = (of) => one({ scenario: 'C3', backend: choice.backend, variant: 'default', metric: of, x: waiters });
    const [took, requests] = [handOff('time per hand-off'), handOff('requests per hand-off')];
    const found = seen(choice);
    return { ...choice, us: cost && cost.value, found, evidence: evidence(found),
      costText: cost ? choice.cost_text.replace('{cost}', time(cost.value)) : '–',
      handOffText: took && requests ? choice.hand_off_text.replace('{time}', time(took.value))
        .replace('{requests}', plain(requests.value)) : '–' };
  }).filter((c) => c.us !== undefined || c.found.each.length > 0);
  const classes = { A: 'a majority of servers agrees', B: 'one server, every grant on disk',
    C: 'a majority of servers, by their clocks', D: 'one server that may forget' };

  // --- findings: a sentence each, or the contrary, or nothing

  const p50 = (backend, variant = 'default') => (one({ scenario: 'C1', backend, variant, metric: 'p50' }) || {}).value;
  const found = (name) => (chosen.find((c) => c.name === name) || { found: { caught: [], each: [] } }).found;
  const worst = (name, fault) => found(name).each.find((f) => f.fault === fault);
  const ofRuns = (f) => `${short(f.two)} of ${short(f.runs)} runs`;

  function durability() {
    const [redis, durable, sqlite] = [p50('redis'), p50('redis', 'durable'), p50('sqlite')];
    if (!redis || !durable || !sqlite) return '';
    const crash = worst('redis', 'server crash');
    const than = durable > 1.1 * sqlite ? `is slower than SQLite: ${time(durable)} against ${time(sqlite)}`
      : durable < 0.9 * sqlite ? `is faster than SQLite: ${time(durable)} against ${time(sqlite)}`
        : `is as fast as SQLite: ${time(durable)} and ${time(sqlite)}`;
    const forgets = !crash ? '' : crash.two > 0 ? `, but a crash of the server gave two holders in ${ofRuns(crash)}`
      : `, and a crash of the server gave two holders in none of ${several(crash.runs, 'run')}`;
    return `**Redis that syncs every write ${than}.** In memory only it takes ${time(redis)}${forgets}.`;
  }

  function redlock() {
    const [single, five] = [p50('redis'), p50('redlock')];
    if (!single || !five) return '';
    const handOff = (backend) => one({ scenario: 'C3', backend, variant: 'default', metric: 'time per hand-off', x: waiters });
    const [a, b] = [handOff('redlock'), handOff('redis')];
    const each = a && b ? `, a hand-off among ${short(waiters)} waiters ${times(a.value / b.value)} (${time(a.value)} against ${time(b.value)})` : '';
    const jump = worst('redlock, 5 nodes', 'clock jump');
    const fell = !jump ? '' : jump.two > 0 ? ` One node whose clock jumped gave two holders in ${ofRuns(jump)}.`
      : ` One node whose clock jumped gave two holders in none of ${several(jump.runs, 'run')}.`;
    const price = five > 1.1 * single ? `${times(five / single)} one Redis` : 'no more than one Redis';
    return `**Redlock on five nodes costs ${price}** (${time(five)} against ${time(single)})${each}.${fell}`;
  }

  function consensus() {
    const of = (backend, servers) => (one({ scenario: 'C2', backend, variant: servers, metric: 'acquire + release, p50' }) || {}).value;
    let dearer = false;
    const said = ['zookeeper', 'etcd'].flatMap((backend) => {
      const [alone, three] = [of(backend, '1 server'), of(backend, '3 servers')];
      dearer = dearer || three > 1.1 * alone;
      return alone && three ? [`${backend} ${times(three / alone)} (${time(three)} against ${time(alone)})`] : [];
    });
    if (said.length === 0) return '';
    const [zookeeper, etcd] = [found('zookeeper, 3 servers'), found('etcd, 3 members')];
    const tried = [...zookeeper.each, ...etcd.each];
    const bad = tried.filter((f) => f.two > 0);
    const alone = zookeeper.alone || etcd.alone ? ', all with one server' : '';
    const safe = tried.length === 0 ? '' : bad.length === 0
      ? ` No fault gave two holders in ${several(sum(tried, (f) => f.runs), 'run')}${alone}.`
      : ` Two holders all the same: ${bad.map((f) => `${f.fault} ${ofRuns(f)}`).join(', ')}.`;
    return `**${dearer ? 'Three servers cost more than one' : 'Three servers cost no more than one'}:** ${list(said)}, all on one disk.${safe}`;
  }

  function pauses() {
    const c12 = (metric) => pick({ scenario: 'C12', metric });
    const open = c12('stale writes accepted by a store without a fence');
    const [refused, passed] = [c12('stale writes refused by a fenced store'), c12('stale writes accepted by a fenced store')];
    if (open.length === 0) return '';
    const beaten = open.filter((r) => r.value > 0);
    const [stopped, through] = [sum(refused, (r) => r.value), sum(passed, (r) => r.value)];
    const who = beaten.length === open.length ? `every one of ${several(open.length, 'lock')}`
      : beaten.length === 0 ? `none of ${several(open.length, 'lock')}` : `${beaten.length} of ${several(open.length, 'lock')}`;
    const token = refused.length === 0 ? ''
      : ` A store that checks the fencing token refused ${short(stopped)} of ${short(stopped + through)}.`;
    return `**A paused holder beats ${who}:** ${several(sum(open, (r) => r.value), 'stale write')} in ${several(sum(open, (r) => r.n), 'run')}.${token}`;
  }

  function waiting() {
    const of = (backend, variant) => (one({ scenario: 'C3', backend, variant, metric: 'requests per hand-off', x: waiters }) || {}).value;
    const [queue, poll, all] = [of('redis', 'default'), of('redis', 'poll'), of('redis', 'broadcast')];
    if (!queue || !poll) return '';
    const herd = all ? `, ${plain(all)} when all are notified` : '';
    const verdict = poll > 1.2 * queue ? 'Polling costs more than a queue' : 'Polling costs no more than a queue';
    return `**${verdict}:** with ${short(waiters)} waiters a hand-off of Redis takes ${plain(queue)} requests with the queue, ${plain(poll)} by polling${herd}.`;
  }

  // What a delay adds, in round trips of the network: those that wait for each other.
  const far = pick({ scenario: 'C32', metric: 'p50' });
  const longest = largest(far.map((r) => r.x));
  const network = far.filter((r) => r.x === longest).map((r) => {
    const near = far.find((n) => n.x === 0 && n.backend === r.backend && n.variant === r.variant);
    const trips = near && longest > 0 ? Math.max(0, (r.value - near.value) / (2000 * longest)) : undefined;
    return { backend: r.backend, variant: r.variant, near: near && near.value, far: r.value, trips };
  }).sort((a, b) => a.far - b.far);

  function distance() {
    const over = network.filter((n) => n.near && n.trips > 0.5);
    if (over.length < 2) return '';
    const [cheapest, dearest] = [over[0], over.at(-1)];
    const near = over.map((n) => n.near);
    const [before, after] = [Math.max(...near) / Math.min(...near), dearest.far / cheapest.far];
    const says = after < 0.5 * before ? 'Over a network all locks cost nearly the same' : 'Over a network the locks still differ in cost';
    return `**${says}:** with a delay of ${short(longest)} ms each way ${time(cheapest.far)} (${label(cheapest)}) to ${time(dearest.far)} (${label(dearest)}); `
      + `the dearest takes ${times(after)} the cheapest, without the delay ${times(before)}. What counts is the number of round trips: ${plain(Math.min(...over.map((n) => n.trips)))} to ${plain(Math.max(...over.map((n) => n.trips)))}.`;
  }

  const findings = [pauses, consensus, redlock, durability, distance, waiting].map((of) => of()).filter((text) => text).slice(0, 5);

  // --- claims

  // What counts runs, as in verdict.cpp: a claim that rests on them is confirmed by ten of each set-up.
  const countsRuns = (r) => / runs$/.test(r.unit) || r.metric.startsWith('runs ');
  const enough = 10;
  function size(id) {
    const mine = pick({ scenario: id }).filter((r) => r.status === 'ok' && !r.metric.startsWith('timeline'));
    const least = (all) => Math.min(...all.map((r) => r.n));
    // Runs of a set-up, or the samples behind a figure: two units, each named.
    const runs = mine.filter(countsRuns);
    if (runs.length) return least(runs) < enough ? `${least(runs)} of ${enough} runs` : several(least(runs), 'run');
    const cycles = mine.filter((r) => r.n > 1);
    return cycles.length ? `${several(least(cycles), 'sample')}` : mine.length ? 'counted' : '–';
  }
  const claims = report.verdicts.map((v) => ({ ...v, size: size(v.id), source: CLAIM_SOURCES[v.id] || '',
    word: v.finding === 'holds only if' ? 'true only under a condition' : v.finding }));
  const many = (finding) => claims.filter((c) => c.finding === finding).length;
  const refuted = many('refuted');
  const tally = `${many('confirmed')} confirmed, ${refuted || 'none'} refuted, ${many('holds only if')} true only under a condition, `
    + `${many('too few runs')} with too few runs for a verdict, ${many('not measured')} not measured.`;

  // A run that failed says so on each page made from it.
  const failures = rows.filter((r) => r.status === 'failed')
    .map((r) => `${r.scenario} ${label(r)}: ${/^(failed|missing)/.test(r.metric) ? '' : `${r.metric} = ${short(r.value)}. `}${r.note}`);
  const failed = failures.length === 0 ? ''
    : `**${several(failures.length, 'measurement')} failed, so this run ended with an error.** Where one failed, do not rely on that backend with such a load.`;

  const env = report.environment;
  const fewest = Math.min(...rows.filter((r) => r.metric.startsWith(twoHolders)).map((r) => r.n));
  const caveat = `Loopback, one machine (${env.processor || '?'}, ${env.cores || '?'} cores; ${env.placement || '?'}): compare the figures with each other, not with your network.`;
  const counted = Number.isFinite(fewest) && fewest < enough
    ? `Counts such as “1 of 1” are runs: a fault was tried ${fewest === 1 ? 'once' : `${fewest} times`} or more in each set-up; to be confirmed a claim takes ten.` : '';

  return { report, rows, label, isFloor, pick, one, short, time, plain, list, several, waiters, choices: chosen, classes,
    findings, network, claims, tally, caveat, failures, failed, counted, seen, faultOf, twoHolders };
}

// Where a claim is made, in these or in similar words. None: often said, by nobody in particular.
const WAYS = 'Several Ways to Implement Distributed Locks';
const HOW = 'How to Do Distributed Locking';
const REDIS = 'Redis manual: Distributed Locks with Redis';
const RECIPES = 'ZooKeeper Recipes and Solutions';
const GUIDE = "ZooKeeper Programmer's Guide";
const DEPTH = 'Redis in Depth';
const REDISSON = 'Redisson manual: Locks and Synchronizers';
const CLAIM_SOURCES = {
  C1: WAYS, C2: WAYS, C3: RECIPES, C4: HOW, C4a: REDIS, C5: DEPTH, C5a: RECIPES, C7: WAYS, C8: HOW, C8a: WAYS, C9: DEPTH,
  C10: REDIS, C11: REDISSON, C11a: REDISSON, C12: HOW, C13: REDIS, C14: REDIS, C15: HOW, C16: GUIDE, C17: WAYS, C18: WAYS,
  C18a: WAYS, C18b: WAYS, C19: WAYS, C20a: WAYS, C21: WAYS, C22: 'ZooKeeper: Wait-free Coordination for Internet-scale Systems',
  C23: RECIPES, C24: GUIDE, C25: RECIPES, C26: "Curator's source: LockInternals", C27: RECIPES, C28: GUIDE, C29: HOW, C30: WAYS,
  C31: 'Leases: An Efficient Fault-tolerant Mechanism for Distributed File Cache Consistency',
};
