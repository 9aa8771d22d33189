// One drawing per backend: who was stopped, who believed to hold the lock, and what the stores did.
function timeline(of) {
  const mine = rows.filter((r) => r.scenario === 'C12' && r.backend === of.backend && r.variant === of.variant && r.metric.startsWith('timeline: '));
  const spans = (metric, who) => mine.filter((r) => r.metric === `timeline: ${metric}` && r.note === who);
  const pause = spans('stopped', 'A')[0];
  if (!pause) return '';
  // From shortly before the pause: what was long before shows nothing.
  const from = Math.max(0, pause.min - 0.35 * (pause.max - pause.min));
  const to = Math.max(...mine.map((r) => r.max)) + 10;
  const [width, left, rightEdge, top] = [1080, 150, 12, 22];
  const x = (ms) => left + ((ms - from) / (to - from)) * (width - left - rightEdge);
  const lanes = { A: top + 16, B: top + 56, open: top + 100, fence: top + 132 };
  const height = lanes.fence + 44;
  let svg = `<rect x="${x(pause.min)}" y="${top - 12}" width="${x(pause.max) - x(pause.min)}" height="${lanes.fence + 14 - top + 12}" fill="var(--fault)"/>`;
  svg += `<text x="${x(pause.min) + 6}" y="${top}">A stopped for ${short(pause.max - pause.min)} ms</text>`;
  const text = (y, words) => `<text x="0" y="${y + 4}">${words}</text>`;
  svg += text(lanes.A, 'A believes it holds') + text(lanes.B, 'B believes it holds');
  svg += text(lanes.open, 'store without fence') + text(lanes.fence, 'store with fence');
  for (const who of ['A', 'B']) {
    for (const s of spans('believes', who)) {
      const start = Math.max(s.min, from);
      svg += `<rect x="${x(start)}" y="${lanes[who] - 9}" width="${Math.max(2, x(s.max) - x(start))}" height="18" rx="3" fill="var(--${who.toLowerCase()})" opacity=".85"><title>${who}: ${short(s.min)} – ${short(s.max)} ms</title></rect>`;
    }
  }
  for (const y of [lanes.open, lanes.fence]) svg += `<line x1="${left}" x2="${width - rightEdge}" y1="${y}" y2="${y}" stroke="var(--line)"/>`;
  const fenced = !pick({ scenario: 'C12', backend: of.backend, variant: of.variant, metric: 'stale writes refused by a fenced store' }).length;
  for (const w of mine) {
    if (w.value < from || !/write/.test(w.metric)) continue;
    const stale = /stale/.test(w.metric), refused = /refused/.test(w.metric);
    const dot = (y) => stale
      ? `<path d="M${x(w.value) - 6} ${y - 6}l12 12m0 -12l-12 12" stroke="var(--bad)" stroke-width="3" fill="none"><title>stale write of A, accepted, at ${short(w.value)} ms</title></path>`
      : `<circle cx="${x(w.value)}" cy="${y}" r="2.6" fill="var(--${w.note.toLowerCase()})"/>`;
    svg += dot(lanes.open);
    if (fenced) continue;
    svg += refused
      ? `<circle cx="${x(w.value)}" cy="${lanes.fence}" r="6.5" fill="none" stroke="var(--good)" stroke-width="3"><title>stale write of A, refused, at ${short(w.value)} ms</title></circle>`
      : dot(lanes.fence);
  }
  if (fenced) svg += `<text x="${left + 6}" y="${lanes.fence - 6}">this mode gives no token: nothing to check</text>`;
  const step = [50, 100, 200, 500, 1000, 2000, 5000].find((s) => (to - from) / s <= 9) || 10000;
  for (let t = Math.ceil(from / step) * step; t <= to - step / 4; t += step) {
    svg += `<line x1="${x(t)}" x2="${x(t)}" y1="${lanes.fence + 16}" y2="${lanes.fence + 20}" stroke="var(--soft)"/><text x="${x(t)}" y="${height - 8}" text-anchor="middle">${t} ms</text>`;
  }
  const facts = pick({ scenario: 'C12', backend: of.backend, variant: of.variant });
  const fact = (metric) => facts.find((r) => r.metric === metric);
  const gap = fact('time until the next holder'), told = fact('time until the first holder was told, after it went on');
  const words = [`next holder after ${short(gap.value)} ms`, `A told ${short(told.value)} ms after it went on`,
    `${short(of.value)} stale writes in ${of.n} trials`];
  return `<div class="timeline"><h4>${escape(label(of))} <small class="id">${words.join(' · ')}</small></h4>
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-label="timeline of ${escape(label(of))}">${svg}</svg></div>`;
}

(function timelines() {
  const all = pick({ scenario: 'C12', metric: 'stale writes accepted by a store without a fence' });
  const target = document.getElementById('timelines');
  if (all.length === 0) {
    target.innerHTML = '<p class="lead">Not part of this run.</p>';
    return;
  }
  const mark = (inner, words) => `<span><svg viewBox="0 0 22 12">${inner}</svg>${words}</span>`;
  target.innerHTML = `<div class="legend">
    ${mark('<rect width="22" height="12" fill="var(--fault)"/>', 'fault')}
    ${mark('<circle cx="11" cy="6" r="3" fill="var(--a)"/>', 'write of A')}
    ${mark('<circle cx="11" cy="6" r="3" fill="var(--b)"/>', 'write of B')}
    ${mark('<path d="M6 1l10 10m0 -10l-10 10" stroke="var(--bad)" stroke-width="3"/>', 'stale write accepted: damage')}
    ${mark('<circle cx="11" cy="6" r="4.5" fill="none" stroke="var(--good)" stroke-width="3"/>', 'stale write refused')}
    </div>` + all.map(timeline).join('');
})();
