// The first screen, the claims and the tables, all from the rows of one run.
const report = JSON.parse(document.getElementById('data').textContent);
const model = modelOf(report, choicesOf(BACKENDS));
const { rows, label, isFloor, pick, one, short } = model;

const inline = (t) => escape(t).replace(/`([^`]+)`/g, '<code>$1</code>').replace(/\*\*(.+?)\*\*/g, '<b>$1</b>');
const markHtml = (backend, hollow) => `<svg class="mark" viewBox="-11 -11 22 22" aria-hidden="true">${mark(backend, 0, 0, 20, hollow)}</svg>`;
// A lock with the mark of its backend.
const named = (r) => ({ html: `${BACKENDS[familyOf(r.backend)] ? markHtml(r.backend, r.variant !== 'default') : ''}${escape(label(r))}` });
const num = (row, note = '') => ({ num: true, html: row ? `${short(row.value)}${note}` : '–' });
const spread = (row) => ({
  num: true,
  html: !row ? '–' : row.min === row.max ? short(row.value)
    : `${short(row.value)} <small>${short(row.min)} – ${short(row.max)}</small>`,
});

function table(id, head, body) {
  const target = document.getElementById(id);
  if (body.length === 0) {
    // A whole part that was not run is no heading to click on in vain.
    const part = target.closest('.part');
    const charts = part && part.querySelector('.chart, #timelines');
    if (part && !charts && part.querySelectorAll('table').length === 1) part.remove();
    else target.outerHTML = '';
    return;
  }
  const cell = (c, tag) => (c !== null && typeof c === 'object')
    ? `<${tag}${c.num ? ' class="num"' : ''}>${c.html}</${tag}>` : `<${tag}>${escape(c)}</${tag}>`;
  target.innerHTML = `<thead><tr>${head.map((c) => cell(c, 'th')).join('')}</tr></thead><tbody>` +
    body.map((r) => `<tr>${r.map((c) => cell(c, 'td')).join('')}</tr>`).join('') + '</tbody>';
}
const right = (html) => ({ num: true, html });

function firstScreen() {
  document.getElementById('caveat').textContent =
    `Holdfast's bench, ${report.environment.date || 'some day'}. ${model.caveat}`;
  const cell = (c) => ({ html: inline(c) });
  table('choice-table', ['You need', 'Take', 'Two holders are possible when', 'Acquire + release', `Hand-off${model.waiters ? `, ${short(model.waiters)} waiters` : ''}`],
    model.choices.map((c) => [cell(c.need), { html: markHtml(c.backend, false) + inline(c.take) },
      cell(c.two), c.costText, c.handOffText]));
  const heads = ['', '', 'Two holders when', 'Acquire + release', 'Hand-off'];
  for (const td of document.querySelectorAll('#choice-table td')) if (heads[td.cellIndex]) td.dataset.head = heads[td.cellIndex];
  document.getElementById('findings').innerHTML = model.findings.map((f) => `<li>${inline(f)}</li>`).join('');
  document.getElementById('counted').textContent = model.counted;
  if (model.findings.length === 0) document.getElementById('found').remove();
  if (model.choices.length === 0) document.getElementById('choose').remove();
  const paused = pausedOf(model);
  if (paused) document.querySelector('#pause small').textContent = `${paused.backend}, one run. A is stopped and knows nothing; its next write is stale.`;
  else document.getElementById('pause').remove();
  if (!model.choices.some((c) => c.us !== undefined)) document.getElementById('cost-safety').remove();
  drawn('#cost-safety > div', (width) => costAgainstSafety(model, width));
  drawn('#pause > div', (width) => pauseOf(model, paused, width));
}

// A picture for the width that its place has; again when that changes.
const places = [];
function drawn(where, picture) {
  const place = document.querySelector(where);
  if (place) places.push({ place, picture, width: 0 });
}
function redraw() {
  for (const p of places) {
    const width = Math.floor(p.place.clientWidth);
    if (width > 0 && width !== p.width) {
      p.width = width;
      p.place.innerHTML = p.picture(width);
    }
  }
}

function needs() {
  const seen = new Map();
  for (const r of [...pick({ scenario: 'C1', metric: 'p50' }), ...pick({ scenario: 'C3', metric: 'time per hand-off' })]) {
    if (!isFloor(r) && r.variant !== 'broadcast' && !/^doc: /.test(r.variant) && !seen.has(label(r))) seen.set(label(r), r);
  }
  const cost = (r) => (one({ scenario: 'C1', metric: 'p50', backend: r.backend, variant: r.variant }) || { value: Infinity }).value;
  const locks = [...seen.values()].sort((a, b) => cost(a) - cost(b));
  const crowd = Math.max(0, ...pick({ scenario: 'C3', metric: 'time per hand-off' }).map((r) => r.x));
  const body = locks.map((d) => {
    const of = (scenario, metric, more = {}) => one({ scenario, metric, backend: d.backend, variant: d.variant, ...more });
    const order = of('C22', 'pairs served out of order');
    const fenced = of('C12', 'stale writes refused by a fenced store');
    const paused = of('C12', 'stale writes accepted by a store without a fence');
    return [
      named(d), report.environment[`durability of ${label(d)}`] || '',
      num(of('C1', 'p50'), ' us'), num(of('C1', 'cycles per second', { x: 1000 })),
      num(of('C3', 'time per hand-off', { x: crowd }), ' us'),
      order ? (order.max === 0 ? 'in order' : `${short(100 * order.value)} % of pairs out of order`) : '–',
      fenced ? 'yes' : paused ? 'no' : '–',
    ];
  });
  table('which-table', ['Lock', 'Durability', right('alone, p50'), right('1000 at once, 1/s'),
    right(crowd ? `hand-off, ${crowd} waiters` : 'hand-off'), 'Order of 20 waiters', 'Token stops stale writes'], body);
}

function openLoop() {
  const shares = [...new Set(pick({ scenario: 'C1', metric: 'open loop: p50' }).map((r) => r.x))].sort((a, b) => a - b);
  const body = shares.length === 0 ? [] : pick({ scenario: 'C1', metric: 'open loop: p50', x: shares[0] }).map((r) => {
    const of = (metric, x) => one({ scenario: 'C1', metric, backend: r.backend, variant: r.variant, x });
    return [named(r), num(of('p50', 1)), num(of('p99', 1)), ...shares.flatMap((x) => [num(of('open loop: cycles per second', x)),
      num(of('open loop: p50', x)), num(of('open loop: p99', x)), num(of('open loop: p99 from the call', x))])];
  });
  table('open-table', ['Lock', right('one by one: p50'), right('p99'), ...shares.flatMap((x) => [right(`${short(x)} %: 1/s`),
    right('p50'), right('p99'), right('p99 from the call')])], body);
}

function handOffs() {
  const body = ['time per hand-off over its floor', 'time per hand-off over that of 100 waiters']
    .flatMap((metric) => pick({ scenario: 'C3', metric })).map((r) => [named(r), right(short(r.x)), r.metric, spread(r), r.note]);
  table('handoff-table', ['Lock', right('waiters'), 'Ratio', right('x, least – most of the rounds'), 'Over'], body);
}

function ratios() {
  const kinds = ['client overhead', 'price of the guarantees', 'whole price', 'whole price, durable alike', 'client overhead in flight',
    'price of the guarantees in flight', 'throughput over its floor in flight', 'throughput over one by one in flight',
    'floor over two round trips', "time over Holdfast's"];
  const body = kinds.flatMap((metric) => pick({ scenario: 'C1', metric }))
    .map((r) => [named(r), r.metric, right(r.x ? short(r.x) : '–'), spread(r), r.note]);
  table('ratio-table', ['What', 'Ratio', right('in flight'), right('x, least – most of the rounds'), 'Over'], body);
}

function peers() {
  const all = pick({ scenario: 'peers' });
  const of = (r, metric) => all.find((x) => x.backend === r.backend && x.variant === r.variant && x.metric === metric);
  const body = all.filter((r) => r.metric === 'p50' || r.metric === 'not installed').map((r) => {
    const there = r.metric === 'p50';
    const name = r.variant === 'default' ? 'Holdfast' : r.variant.replace(/^peer: /, '');
    return [r.backend, isFloor(r) || r.variant.startsWith('peer: ') || name === 'Holdfast' ? name : `Holdfast ${name}`,
      there ? spread(r) : right('–'), there ? num(of(r, 'p99')) : right('–'),
      there ? spread(of(r, 'time over the bare floor')) : right('–'), r.note];
  });
  table('peers-table', ['Server', 'Lock', right('p50, us, least – most of the rounds'), right('p99, us'),
    right('x over the bare client'), 'Settings'], body);
}

function idle() {
  const body = pick({ scenario: 'C5a', metric: 'requests per waiter and second' }).map((r) => {
    const cpu = one({ scenario: 'C5a', metric: 'server CPU', backend: r.backend, variant: r.variant });
    return [named(r), right(short(r.x)), num(r), cpu ? right(`${short(cpu.value)} %`) : right('–'), r.note];
  });
  table('idle-table', ['How they wait', right('waiters'), right('requests per waiter and second'), right('server CPU'), ''], body);
}

function scale() {
  const body = pick({ scenario: 'C6' }).filter((r) => r.metric.startsWith('threads: ')).map((r) => {
    const many = r.metric.slice('threads: '.length), each = many.slice(0, -1);
    const of = (metric) => one({ scenario: 'C6', metric, backend: r.backend, variant: r.variant, x: r.x });
    return [named(r), `${short(r.x)} ${many}`, num(of(`memory per ${each}`)), num(of(`resident memory per ${each}`)), num(r),
      num(of(`CPU: ${many}`), ' %'), num(of(`requests per ${each} and second`))];
  });
  table('scale-table', ['Lock', '', right('bytes each, by malloc'), right('bytes each, resident'), right('threads'),
    right('of a core'), right('requests each and second')], body);
}

function delays() {
  const all = pick({ scenario: 'C17', metric: 'leases lost' });
  const levels = [...new Set(all.map((r) => r.x))].sort((a, b) => a - b);
  const body = [...new Set(all.map(label))].map((who) => [named(all.find((a) => label(a) === who)), ...levels.map((x) => {
    const r = all.find((a) => label(a) === who && a.x === x);
    return r ? right(`${r.value} of ${r.n}`) : right('–');
  })]);
  table('delay-table', ['Lock', ...levels.map((x) => right(x ? `up to ${short(x)} ms` : 'no delay'))], body);
}

function ensembles() {
  const body = pick({ scenario: 'C2' }).filter((r) => r.unit === 'us' && r.metric.endsWith('p50')).map((r) => {
    const of = (metric) => one({ scenario: 'C2', metric, backend: r.backend, variant: r.variant, x: r.x });
    return [named(r), r.metric.replace(', p50', ''), spread(r), num(of('CPU of all servers, each'), ' us'),
      num(of('cycles per second, 64 in flight'))];
  });
  table('ensemble-table', ['Lock', '', right('p50, us, least – most'), right('CPU of all servers'), right('64 in flight, 1/s')], body);
}

function takeovers() {
  const body = pick({ scenario: 'C33', metric: 'first grant after the fault' }).map((r) => {
    const of = (metric) => one({ scenario: 'C33', metric, backend: r.backend, variant: r.variant });
    return [named(r), right(short(r.n)), spread(r), spread(of('first grant after the new primary is named')), num(of('grants')),
      num(of('acquisitions that failed')), num(of('two holders')), r.note];
  });
  table('takeover-table', ['Lock', right('times'), right('first grant after the fault, ms'), right('after the new primary is named, ms'),
    right('grants'), right('acquisitions that failed'), right('two holders'), ''], body);
}

function bursts() {
  const body = pick({ scenario: 'C3', metric: 'burst: time until all survivors were served' }).map((r) => {
    const of = (metric) => one({ scenario: 'C3', metric, backend: r.backend, variant: r.variant, x: r.x });
    return [named(r), right(short(r.x)), spread(of('burst: time until half of the survivors were served')), spread(r),
      num(of('burst: requests per survivor')), r.note];
  });
  table('burst-table', ['How they wait', right('waiters'), right('half of the others served after, ms'), right('all, ms'),
    right('requests each'), ''], body);
}

function conflicts() {
  const body = pick({ scenario: 'C5', metric: 'requests per grant' }).map((r) => {
    const of = (metric) => one({ scenario: 'C5', metric, backend: r.backend, variant: r.variant, x: r.x });
    const vain = of('asked in vain');
    return [named(r), right(short(r.x)), num(r), num(of('time to grant p50')), num(of('time to grant p99')),
      num(of('time to grant, longest')), num(of('guarded jobs per second')), num(of('other jobs per second')),
      right(vain ? `${short(100 * vain.value)} %` : '–'), num(of('CPU of the clients per grant')), num(of('CPU of the server per grant'))];
  });
  table('conflict-table', ['What they do', right('callers'), right('requests per grant'), right('granted after, ms: p50'),
    right('p99'), right('longest'), right('guarded jobs, 1/s'), right('other jobs, 1/s'), right('asked in vain'),
    right('CPU per grant, us: clients'), right('server')], body);
}

function readers() {
  const body = pick({ scenario: 'C23', metric: 'grants per second' }).map((r) => {
    const of = (metric) => one({ scenario: 'C23', metric, backend: r.backend, variant: r.variant, x: r.x });
    return [named(r), right(`${short(r.x)} %`), num(r), num(of('reads per second')), num(of('requests per grant')),
      num(of("writer's longest wait"), ' ms'), r.note];
  });
  table('readers-table', ['Lock', right('readers'), right('grants, 1/s'), right('reads, 1/s'), right('requests per grant'),
    right("writer's longest wait"), ''], body);
}

function kinds() {
  const body = pick({ scenario: 'C23a' }).map((r) => [named({ ...r, variant: 'default' }), r.variant, r.metric,
    right(r.x ? short(r.x) : '–'), spread(r), r.unit, r.note]);
  table('kinds-table', ['Server', 'Lock', '', right('callers'), right('least – most of the rounds'), '', ''], body);
}

function network() {
  const delays = [...new Set(pick({ scenario: 'C32', metric: 'p50' }).map((r) => r.x))].sort((a, b) => a - b);
  const body = model.network.map((n) => [named(n), ...delays.map((x) => {
    const r = one({ scenario: 'C32', metric: 'p50', backend: n.backend, variant: n.variant, x });
    return right(r ? model.time(r.value) : '–');
  }), right(n.trips === undefined ? '–' : n.trips.toFixed(1))]);
  table('network-table', ['Lock', ...delays.map((x) => right(`${short(x)} ms each way`)), right('round trips')], body);
}

function election() {
  const body = pick({ scenario: 'C25', metric: 'time without a leader' }).map((r) => {
    const of = (metric) => one({ scenario: 'C25', metric, backend: r.backend, variant: r.variant });
    const [two, seen] = [of('changes of leader with two leaders'), of('leaders that others saw by name')];
    return [named(r), right(short(r.n)), right(short(r.x)), spread(r), num(two, two ? ` ${two.unit}` : ''),
      seen ? right(`${seen.value} of ${seen.n}`) : right('–')];
  });
  table('election-table', ['Lock', right('leaders killed'), right('ttl, ms'), right('ms without a leader, least – most'),
    right('two leaders'), right('seen by others')], body);
}

function tasks() {
  const body = pick({ scenario: 'C29', metric: 'tasks done more than once' }).map((r) => {
    const of = (metric) => one({ scenario: 'C29', metric, backend: r.backend, variant: r.variant });
    return [r.backend === 'none' ? 'nothing' : named(r), right(short(r.n)), num(of('tasks never done')), num(r),
      num(of('workers killed')), num(of('time until all tasks were done'), ' ms'), r.note];
  });
  table('tasks-table', ['Guarded by', right('tasks'), right('never done'), right('more than once'), right('workers killed'),
    right('all done after'), ''], body);
}

function ranks() {
  const scores = pick({ scenario: 'C21', metric: 'reliability: mean rank' });
  const body = scores.map((r) => {
    const of = (scenario, metric) => one({ scenario, metric, backend: r.backend });
    const two = of('C21', 'set-ups with two holders');
    return [named(r), num(two, two ? ` ${two.unit}` : ''), num(of('C21', 'stale writes accepted, without a token check')),
      num(of('C21', 'stale writes refused, with a token check')), num(of('C21', 'longest time without a holder, over the ttl'), ' x'),
      num(r), num(of('C30', 'rank: complexity')), num(of('C30', 'rank: performance')), num(of('C30', 'rank: reliability')),
      two ? two.note : ''];
  });
  table('rank-table', ['Lock', right('set-ups with two holders'), right('stale writes accepted, a run'), right('refused by a token check'),
    right('without a holder, over the ttl'), right('mean rank'), right('rank: complexity'), right('performance'), right('reliability'),
    'Two holders'], body);
}

function order() {
  const body = pick({ scenario: 'C22', metric: 'pairs served out of order' }).map((r) => {
    const of = (metric) => one({ scenario: 'C22', metric, backend: r.backend, variant: r.variant });
    return [named(r), right(`${short(100 * r.value)} %`), num(of('Jain index')), num(of('longest wait over mean'), ' x'),
      num(of('longest wait'), ' ms'), r.note];
  });
  table('order-table', ['Lock', right('pairs out of order'), right('Jain index'), right('longest wait / mean'),
    right('longest wait'), ''], body);
}

function damage() {
  const body = rows.filter((r) => r.metric === 'updates lost' || r.metric === 'sold')
    .sort((a, b) => a.scenario.localeCompare(b.scenario))
    .map((r) => [r.scenario, r.backend === 'none' ? (r.variant === 'guard: none' ? 'nothing' : r.variant) : named(r), r.metric, num(r), r.note]);
  table('damage-table', ['', 'Guarded by', '', right('count'), ''], body);
}

function histories() {
  const kinds = [['overlaps of belief', 'two at once'], ['tokens against the order of grants', 'tokens wrong'],
    ['wrong answers of a fenced store', 'fence wrong'], ['grants out of the order of requests', 'out of order'],
    ['wrong words about the previous holder', 'words wrong'],
    ['stale writes accepted by an unfenced store', 'stale, no fence'],
    ['longest time without a holder', 'no holder, ms']];
  const all = pick({ scenario: 'history' });
  const body = all.filter((r) => r.metric === 'acquisitions recorded').map((r) => {
    const found = all.filter((x) => x.backend === r.backend && x.variant === r.variant);
    const word = found.some((x) => x.status !== 'ok') ? 'see above'
      : found.some((x) => x.note.startsWith('expected')) ? 'expected' : '';
    return [r.backend === 'none' ? r.variant : named(r), num(r),
      ...kinds.map(([metric]) => num(found.find((x) => x.metric === metric))), word];
  });
  table('history-table', ['Deployment', right('acquisitions'), ...kinds.map(([, words]) => right(words)), ''], body);
  const cost = all.find((r) => r.metric === 'cost of recording one acquisition');
  if (cost) document.getElementById('history-cost').textContent = `Recording one acquisition costs ${short(cost.value)} ns.`;
}

function faults() {
  const of = (r, metric) => one({ scenario: r.scenario, backend: r.backend, variant: r.variant, metric });
  const ofRuns = (r) => ({ num: true, html: !r ? '–' : `<span class="${r.value > 0 ? 'bad' : ''}">${short(r.value)} of ${short(r.n)}</span>` });
  const body = pick({ metric: 'runs with two holders' }).map((r) => [r.scenario, named(r), model.faultOf(r) || 'none',
    ofRuns(r), ofRuns(of(r, 'runs with a token going back')), spread(of(r, 'time with two holders')),
    spread(of(r, 'time until the holder was told')), r.note.replace(/^of \d+ runs[;,]? ?/, '')]);
  table('fault-table', ['', 'Set-up', 'Fault', right('runs with two holders'), right('token went back'), right('ms with two holders'),
    right('loss reported after, ms'), ''], body);
  const next = 'time until the next holder: ';
  table('death-table', ['Lock', 'What happened to the holder', right('ttl, ms'), right('next holder after, ms, least – most'),
    right('without a holder, ms'), right('runs with two holders')],
  rows.filter((r) => r.metric.startsWith(next)).map((r) => {
    const fault = r.metric.slice(next.length);
    return [named(r), fault, right(short(r.x)), spread(r), spread(of(r, `time without a holder: ${fault}`)),
      ofRuns(of(r, `runs with two holders: ${fault}`))];
  }));
}

function runs() {
  const body = rows.filter((r) => /^of \d+ runs$/.test(r.unit))
    .map((r) => [r.scenario, named(r), r.metric, right(`${r.value} ${r.unit}`), r.note]);
  table('runs-table', ['', 'Lock', '', right('seen in'), ''], body);
}

function verdicts() {
  const tone = { confirmed: 'good', refuted: 'bad', 'holds only if': 'warn', 'too few runs': 'warn', 'not measured': 'none' };
  document.getElementById('tally').textContent = model.tally;
  document.getElementById('verdicts').innerHTML = model.claims.map((c) => `<details class="claim"><summary>
    <span><span class="tag ${tone[c.finding]}">${c.word}</span></span><span class="id">${c.id}</span>
    <span class="what">${escape(c.claim)}</span><span class="size">${c.size}</span><span class="source" title="${escape(c.source)}">${escape(c.source || 'often said')}</span></summary>
    <p>${escape(c.figure || 'The run has no rows for it.')}</p><p class="rule">Rule: ${escape(c.rule)}</p></details>`).join('');
  table('target-table', ['Target', right('aim'), right('measured'), ''], report.targets.map((t) => [
    t.what, right(`${t.side} ${short(t.limit)} ${t.unit}`), right(t.measured ? `${short(t.value)} ${t.unit}` : '–'),
    { html: t.measured ? (t.met ? '<span class="good">met</span>' : '<span class="warn">missed</span>') : '' }]));
}

function alerts() {
  const out = [];
  if (report.partial) out.push('<div class="alert note"><b>Partial.</b> The run was ended by ^C; what is missing was not measured.</div>');
  if (typeof echarts === 'undefined') out.push('<div class="alert note"><b>Without charts.</b> npm was not there when the bench was built; every figure is in the list of rows at the end.</div>');
  const said = (r) => escape(`${r.scenario} ${label(r)}: ${r.metric}${/^(failed|missing)/.test(r.metric) ? '' : ` = ${short(r.value)}`}. ${r.note}`);
  for (const r of rows.filter((x) => x.status === 'violated')) {
    out.push(`<div class="alert"><b>A guarantee of Holdfast was violated:</b> ${said(r)}</div>`);
  }
  if (model.failed) {
    out.push(`<div class="alert">${inline(model.failed)}<ul>${model.failures.map((f) => `<li>${escape(f)}</li>`).join('')}</ul></div>`);
  }
  document.getElementById('alerts').innerHTML = out.join('');
}

function timelines() {
  const all = pick({ scenario: 'C12', metric: 'stale writes accepted by a store without a fence' });
  const target = document.getElementById('timelines');
  if (all.length === 0) return target.closest('.part').remove();
  all.forEach((of, i) => {
    const fact = (metric) => one({ scenario: 'C12', backend: of.backend, variant: of.variant, metric });
    const [gap, told] = [fact('time until the next holder'), fact('time until the first holder was told, after it went on')];
    const words = [gap && `next holder after ${short(gap.value)} ms`, told && `A notified ${short(told.value)} ms after it resumed`,
      `${model.several(of.value, 'stale write')} in ${model.several(of.n, 'run')}`].filter((w) => w);
    target.insertAdjacentHTML('beforeend', `<div class="timeline"><h4>${named(of).html} <small>${words.join(' · ')}</small></h4><div id="timeline-${i}"></div></div>`);
    drawn(`#timeline-${i}`, (width) => pauseOf(model, of, width));
  });
}

function half() {
  const body = rows.filter((r) => (r.scenario === 'C20' || r.scenario === 'C20a') && / runs$/.test(r.unit))
    .map((r) => [r.scenario, named(r), r.metric, right(`${short(r.value)} ${r.unit}`), r.note]);
  table('half-table', ['', 'Lock', '', right('seen in'), ''], body);
}

// The part to which an address points is open; a chart or a timeline is drawn when its part opens.
function unfold() {
  const parts = [...document.querySelectorAll('.part')];
  const most = parts.filter((part) => part.id !== 'p-rows');
  const open = () => {
    const part = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (part && part.matches('.part')) part.open = true;
  };
  for (const part of parts) part.addEventListener('toggle', redraw);
  const button = document.getElementById('unfold');
  button.addEventListener('click', () => {
    const fold = most.every((part) => part.open);
    for (const part of most) part.open = !fold;
    button.textContent = fold ? 'unfold all' : 'fold all';
  });
  window.addEventListener('hashchange', open);
  window.addEventListener('resize', redraw);
  open();
}

function rest() {
  const env = report.environment;
  document.getElementById('methods').innerHTML = report.methods
    .map((m) => `<dt><span class="id">${m.id}</span> ${escape(m.title)}</dt><dd>${escape(m.text)}</dd>`).join('');
  table('env-table', ['', ''], [...Object.entries(env), ['seed', report.seed], ['duration', `${Math.round(report.seconds)} s`]]);
  const columns = ['scenario', 'backend', 'variant', 'metric', 'x', 'value', 'unit', 'n', 'min', 'max', 'status', 'note'];
  document.getElementById('p-rows').addEventListener('toggle', () => {
    table('row-table', columns, rows.map((r) => columns.map((c) => (typeof r[c] === 'number' ? right(short(r[c])) : r[c]))));
  }, { once: true });
}

alerts(); firstScreen(); verdicts(); needs(); ratios(); openLoop(); handOffs(); ensembles(); takeovers(); bursts(); conflicts(); peers(); idle(); scale(); readers(); kinds(); network(); election(); half(); tasks(); ranks(); order(); delays(); damage(); histories(); faults(); runs(); timelines(); rest(); unfold(); redraw();
