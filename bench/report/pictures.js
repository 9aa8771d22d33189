// The two pictures of the first screen, as SVG for any width in px, and the mark of each backend. The page draws them
// anew for its width; docs/report/README.md keeps them as files. Colours are the variables of page.css; BACKENDS has
// what each backend's backend.json says.
const OTHER = 'M-9 -4H9V4H-9Z';  // in a box from -10 to 10, as each backend's own
// One library may have several backends: "redis-cluster" looks like "redis".
const familyOf = (backend) => (BACKENDS[backend] ? backend : backend.split('-')[0]);
const markOf = (backend) => (BACKENDS[familyOf(backend)] || { mark: OTHER }).mark;
const colourOf = (backend) => (BACKENDS[familyOf(backend)] ? `--${familyOf(backend)}` : '--soft');

const escape = (t) => String(t).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
// About what system-ui needs at 12 px; a little more is kept free.
const widthOf = (words, size = 12) => 0.56 * size * String(words).length;

function mark(backend, x, y, size, hollow = false) {
  const colour = `var(${colourOf(backend)})`;
  return `<path d="${markOf(backend)}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size / 20})" `
    + `fill="${hollow ? 'var(--card)' : colour}" stroke="${colour}" stroke-width="${hollow ? 4 : 1}"/>`;
}
function svgOf(width, height, name, body) {
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" `
    + `role="img" aria-label="${escape(name)}">${body}</svg>`;
}
const text = (x, y, words, kind = '', anchor = 'start') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${kind}" text-anchor="${anchor}">${escape(words)}</text>`;
const line = (x1, y1, x2, y2, more = '') => `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ${more}/>`;

// Across: the cost, logarithmic. Upwards: the safety class; each lock on a line of its own, with what its faults did.
function costAgainstSafety(model, width) {
  const shown = model.choices.filter((c) => c.us !== undefined);
  if (shown.length === 0) return '';
  const low = 10 ** Math.floor(Math.log10(Math.min(...shown.map((c) => c.us))));
  const high = 10 ** Math.ceil(Math.log10(1.2 * Math.max(...shown.map((c) => c.us))));
  const [left, right, top, step, head] = [0, width, 4, 32, 20];
  const x = (us) => left + 14 + (Math.log(us / low) / Math.log(high / low)) * (right - left - 28);
  let y = top;
  let body = '';
  const bands = Object.keys(model.classes).filter((c) => shown.some((s) => s.class === c));
  const points = [];
  bands.forEach((band, i) => {
    const mine = shown.filter((c) => c.class === band).sort((a, b) => a.us - b.us);
    const height = head + mine.length * step;
    body += `<rect x="${left}" y="${y}" width="${right - left}" height="${height}" fill="var(--band${i % 2})"/>`;
    body += text(left + 8, y + 14, `${band}: ${model.classes[band]}`, 'band');
    mine.forEach((choice, k) => points.push([choice, y + head + (k + 0.5) * step - 4]));
    y += height;
  });
  for (let us = low; us <= high * 1.001; us *= 10) {
    body += line(x(us), top, x(us), y, 'stroke="var(--line)"')
      + line(x(us), y, x(us), y + 5, 'stroke="var(--soft)"')
      + text(x(us), y + 18, us < 1000 ? `${us} us` : `${us / 1000} ms`, 'axis', us === low ? 'start' : us * 1.001 >= high ? 'end' : 'middle');
    for (let k = 2; k < 10 && us < high * 0.99; k += 1) body += line(x(k * us), y, x(k * us), y + 3, 'stroke="var(--soft)"');
  }
  for (const [choice, at] of points) {
    const [name, cost] = [choice.name, ` ${model.time(choice.us)}`];
    const sign = { bad: '✗ ', good: '✓ ' }[choice.evidence.tone] || '';
    const said = sign + choice.evidence.text;
    const px = x(choice.us);
    // Beside the mark, on the side that has room, without the cost where neither has; what is said of faults may pass below it.
    const [toRight, toLeft] = [right - 18 - px, px - 18 - left];
    const needs = widthOf(name + cost, 13);
    const after = needs <= toRight || (needs > toLeft && toRight >= toLeft);
    const room = after ? toRight : toLeft;
    const [tx, anchor] = after ? [px + 14, 'start'] : [px - 14, 'end'];
    const price = needs <= room ? cost : '';
    const [sx, side] = widthOf(said, 11.5) <= room ? [tx, anchor] : [after ? right - 4 : left + 4, after ? 'end' : 'start'];
    body += mark(choice.backend, px, at - 4, 15)
      + `<text x="${tx.toFixed(1)}" y="${at.toFixed(1)}" text-anchor="${anchor}" class="name">${escape(name)}<tspan class="cost">${escape(price)}</tspan></text>`
      + text(sx, at + 13.5, said, `seen ${choice.evidence.tone}`, side);
  }
  body += text(right - 3, y + 36, width < 480 ? 'acquire + release, logarithmic' : 'acquire + release, median; logarithmic: each step is ten times', 'axis', 'end');
  return svgOf(width, y + 44, 'Cost against safety', body);
}

// One run of C12: who was stopped, who believed it held the lock, and what became of the writes.
function pauseOf(model, of, width) {
  const mine = model.rows.filter((r) => r.scenario === 'C12' && r.backend === of.backend && r.variant === of.variant && r.metric.startsWith('timeline: '));
  const spans = (metric, who) => mine.filter((r) => r.metric === `timeline: ${metric}` && r.note === who);
  const pause = spans('stopped', 'A')[0];
  if (!pause) return '';
  // From shortly before the pause to where B ends: what was long before shows nothing.
  const from = Math.max(0, pause.min - 0.3 * (pause.max - pause.min));
  const to = Math.max(...mine.map((r) => r.max)) + 40;
  const [left, right, top] = [0, width, 22];
  const x = (ms) => left + ((Math.max(ms, from) - from) / (to - from)) * (right - left);
  const lane = { A: top + 28, B: top + 86, open: top + 152, fence: top + 212 };
  const bottom = lane.fence + 28;
  const seconds = (ms) => `${model.short(ms / 1000)} s`;
  let body = `<rect x="${x(pause.min).toFixed(1)}" y="6" width="${(x(pause.max) - x(pause.min)).toFixed(1)}" height="${bottom - 6}" fill="var(--fault)"/>`
    + text((x(pause.min) + x(pause.max)) / 2, top - 2, `A is paused for ${seconds(pause.max - pause.min)}`, 'name', 'middle');
  const bar = (start, end, y, who, more = '') => `<rect x="${x(start).toFixed(1)}" y="${y}" width="${Math.max(2, x(end) - x(start)).toFixed(1)}" height="14" rx="2" fill="var(--${who.toLowerCase()})" ${more}/>`;
  for (const s of spans('believes', 'A')) {
    body += bar(s.min, Math.min(s.max, pause.min), lane.A, 'A') + bar(Math.max(s.min, pause.min), Math.min(s.max, pause.max), lane.A, 'A', 'opacity=".3"');
    if (s.max > pause.max) body += bar(pause.max, s.max, lane.A, 'A');
  }
  const [second] = spans('believes', 'B');
  for (const s of spans('believes', 'B')) body += bar(s.min, s.max, lane.B, 'B');
  body += text(left, lane.A - 5, 'A believes it holds the lock', 'lane');
  if (second) {
    const words = `B is granted it ${seconds(second.min - pause.min)} later`;
    body += text(Math.min(x(second.min), right - widthOf(words)), lane.B - 5, words, 'lane');
  }
  body += text(left, lane.open - 16, 'store that accepts every write', 'lane') + text(left, lane.fence - 16, 'store that checks the fencing token', 'lane');
  for (const y of [lane.open, lane.fence]) body += line(left, y, right, y, 'stroke="var(--line)"');
  const fenced = model.pick({ scenario: 'C12', backend: of.backend, variant: of.variant, metric: 'stale writes refused by a fenced store' }).length > 0;
  const stale = mine.filter((w) => /stale/.test(w.metric) && w.value >= from);
  const cross = (at, y) => `<path d="M${(at - 6).toFixed(1)} ${y - 6}l12 12m0 -12l-12 12" stroke="var(--bad)" stroke-width="3" fill="none"/>`;
  const ring = (at, y) => `<circle cx="${at.toFixed(1)}" cy="${y}" r="6.5" fill="var(--card)" stroke="var(--good)" stroke-width="3"/>`;
  for (const w of mine.filter((r) => r.metric === 'timeline: write' && r.value >= from)) {
    for (const y of fenced ? [lane.open, lane.fence] : [lane.open]) {
      body += `<circle cx="${x(w.value).toFixed(1)}" cy="${y}" r="2" fill="var(--${w.note.toLowerCase()})"/>`;
    }
  }
  const last = Math.min(right, Math.max(...stale.map((w) => x(w.value))) + 6);
  const said = (y, words, kind) => text(Math.max(last, left + widthOf(words)), y + 19, words, kind, 'end');
  const its = "A's stale write: ";
  if (stale.length) body += said(lane.open, `${its}accepted`, 'seen bad');
  for (const w of stale) {
    body += cross(x(w.value), lane.open);
    if (fenced) body += /refused/.test(w.metric) ? ring(x(w.value), lane.fence) : cross(x(w.value), lane.fence);
  }
  const passed = stale.filter((w) => !/refused/.test(w.metric)).length;
  if (fenced && stale.length) body += said(lane.fence, passed ? `${its}${passed} accepted` : `${its}refused`, passed ? 'seen bad' : 'seen good');
  if (!fenced) body += text(left, lane.fence - 2, 'this mode gives no token: nothing to check', 'axis');
  const step = [50, 100, 200, 500, 1000, 2000, 5000].find((s) => (to - from) / s <= width / 90) || 10000;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    body += line(x(t), bottom, x(t), bottom + 5, 'stroke="var(--soft)"')
      + text(x(t), bottom + 18, t, 'axis', x(t) < 24 ? 'start' : x(t) > width - 30 ? 'end' : 'middle');
  }
  body += text(right - 3, bottom + 36, 'ms since A was granted the lock', 'axis', 'end');
  return svgOf(width, bottom + 44, `A paused holder of ${of.backend}`, body);
}

// The run that the first screen shows: of the safest lock whose store can check a token.
function pausedOf(model) {
  const all = model.pick({ scenario: 'C12', metric: 'stale writes refused by a fenced store' });
  const order = ['zookeeper', 'etcd', 'postgresql', 'mysql', 'redis'];
  const place = (r) => (order.includes(r.backend) ? order.indexOf(r.backend) : order.length);
  return all.sort((a, b) => place(a) - place(b))[0];
}
