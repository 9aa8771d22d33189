// The report as Markdown with pictures, for readers on a forge: docs/report/README.md, from the kept run beside it.
// node markdown.mjs RUN.json FOLDER           writes README.md, cost-safety.svg and pause.svg there
// node markdown.mjs RUN.json FOLDER --check   exit 1 when they are not what the run says
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { backends, coloured } from './backends.mjs';

const source = dirname(fileURLToPath(import.meta.url));
const [run, folder, check] = process.argv.slice(2);
const read = (file) => readFileSync(join(source, file), 'utf8');
vm.runInThisContext(`const BACKENDS = ${JSON.stringify(backends)};`);
for (const file of ['model.js', 'pictures.js']) vm.runInThisContext(read(file), { filename: file });
const { choicesOf, modelOf, costAgainstSafety, pauseOf, pausedOf, escape } =
  vm.runInThisContext('({ choicesOf, modelOf, costAgainstSafety, pauseOf, pausedOf, escape })');

const report = JSON.parse(readFileSync(run, 'utf8'));
const model = modelOf(report, choicesOf(backends));
const { pick, one, short } = model;

// A picture by itself has the colours and the letters of the page, and a ground of its own.
function standalone(svg, title) {
  const css = coloured(read('page.css'));
  const colours = css.slice(0, css.indexOf('@media print'));
  const letters = css.slice(css.indexOf('.picture text'), css.indexOf('/* The end of what the files have. */'));
  const [, width, height] = svg.match(/viewBox="0 0 (\S+) (\S+)"/);
  const edge = 16;
  const [w, h] = [Number(width) + 2 * edge, Number(height) + 2 * edge + 22];
  const body = svg.slice(svg.indexOf('>') + 1, svg.lastIndexOf('</svg>')).replaceAll('><', '>\n<');
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" role="img" aria-label="${escape(title)}">
<style>
${colours}${letters}</style>
<rect width="${w}" height="${h}" fill="var(--card)"/>
<text x="${edge}" y="${edge + 8}" class="name">${escape(title)}</text>
<g transform="translate(${edge} ${edge + 22})">
${body}
</g>
</svg>
`;
}

const cell = (c) => String(c).replaceAll('|', '\\|').replaceAll('\n', ' ');
const plainCell = (c) => cell(c).replace(/[<>*_`]/g, (m) => `\\${m}`);
const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, body) => [row(head), row(head.map((h) => (h.startsWith('>') ? '--:' : '---'))), ...body.map(row)]
  .join('\n').replaceAll('| >', '| ');
// A part to unfold; nothing where the run has no rows for it.
const part = (title, head, body, lead = '') => (body.length === 0 ? '' : `<details><summary><b>${title}</b></summary>

${lead ? `${lead}\n\n` : ''}${table(head, body)}

</details>
`);
const figure = (r, unit = '') => (r ? `${short(r.value)}${unit}` : '–');
const spread = (r) => (!r ? '–' : r.min === r.max ? short(r.value) : `${short(r.value)} (${short(r.min)} to ${short(r.max)})`);

function parts() {
  const name = (r) => plainCell(model.label(r));
  const c1 = (r, metric) => one({ scenario: 'C1', backend: r.backend, variant: r.variant, metric });
  const locks = pick({ scenario: 'C1', metric: 'p50' }).sort((a, b) => a.value - b.value);
  const c2 = pick({ scenario: 'C2' }).filter((r) => r.unit === 'us' && r.metric.endsWith('p50'));
  const c3 = pick({ scenario: 'C3', metric: 'time per hand-off', x: model.waiters });
  const c12 = pick({ scenario: 'C12', metric: 'stale writes accepted by a store without a fence' });
  const paused = (r, metric) => one({ scenario: 'C12', backend: r.backend, variant: r.variant, metric });
  const faults = model.rows.filter((r) => r.metric.startsWith(model.twoHolders));
  return [
    part('What one lock costs', ['Lock', '>p50, us (least to most of the rounds)', '>p99, us'],
      locks.map((r) => [name(r), spread(r), figure(c1(r, 'p99'))]), 'Acquire + release by one blocking caller when no other client wants the lock. *floor*: a bare client, without Holdfast.'),
    part('What a network changes', ['Lock', '>without a delay', `>${short(Math.max(...pick({ scenario: 'C32' }).map((r) => r.x)))} ms each way`, '>round trips'],
      model.network.map((n) => [name(n), n.near ? model.time(n.near) : '–', model.time(n.far), n.trips === undefined ? '–' : n.trips.toFixed(1)]),
      'Through a proxy that delays each piece between client and servers; the links among servers are as they are.'),
    part('Several servers', ['Lock', '', '>p50, us (least to most)'],
      c2.map((r) => [name(r), r.metric.replace(', p50', ''), spread(r)]), "All servers share this machine's cores and disk."),
    part(`What waiting costs, ${short(model.waiters)} waiters`, ['Lock', '>us per hand-off', '>requests per hand-off'],
      c3.map((r) => [name(r), figure(r), figure(one({ scenario: 'C3', backend: r.backend, variant: r.variant, metric: 'requests per hand-off', x: r.x }))])),
    part('A paused holder', ['Lock', '>runs', '>stale writes', '>refused by the token', '>accepted in spite of it', '>next holder after, ms'],
      c12.map((r) => [name(r), short(r.n), figure(r), figure(paused(r, 'stale writes refused by a fenced store')),
        figure(paused(r, 'stale writes accepted by a fenced store')), figure(paused(r, 'time until the next holder'))])),
    part('A primary dies', ['Lock', '>times', '>first grant after the fault, ms', '>after the new primary is named, ms', '>two holders'],
      pick({ scenario: 'C33', metric: 'first grant after the fault' }).map((r) => {
        const of = (metric) => one({ scenario: 'C33', metric, backend: r.backend, variant: r.variant });
        return [name(r), short(r.n), spread(r), spread(of('first grant after the new primary is named')), figure(of('two holders'))];
      }), '20 callers want one lock when the primary is killed or replaced.'),
    part('Faults, and two holders at once', ['', 'Set-up', 'Fault', '>runs with two holders', 'Notes'],
      faults.map((r) => [r.scenario, name(r), model.faultOf(r) || 'none', `${short(r.value)} of ${short(r.n)}`, plainCell(r.note.replace(/^of \d+ runs[;,]? ?/, ''))]),
      'Some set-ups are there to be caught; the notes say why.'),
  ].filter((p) => p).join('\n');
}

const env = report.environment;
const paused = pausedOf(model);
const pictures = {};
if (model.choices.some((c) => c.us !== undefined)) pictures['cost-safety.svg'] = standalone(costAgainstSafety(model, 640), 'Cost against safety: left is cheaper, up is safer; ✗ two holders at once after a fault');
if (paused) pictures['pause.svg'] = standalone(pauseOf(model, paused, 640), `A paused holder of ${paused.backend}, one run`);
const shown = (file, words) => (pictures[file] ? `![${words}](${file})\n\n` : '');
const text = `# Which distributed lock?

<!-- Generated: node bench/report/markdown.mjs docs/report/reference.json docs/report -->

${model.caveat}
${model.failed ? `\n${model.failed}\n\n${model.failures.map((f) => `- ${plainCell(f)}`).join('\n')}\n\n` : ''}The same with every chart and row: [reference.html](reference.html), to open from a checkout; its data: [reference.json](reference.json).

${table(['You need', 'Take', 'Two holders are possible when', 'Two holders here', 'Acquire + release', `Hand-off, ${short(model.waiters)} waiters`],
    model.choices.map((c) => [c.need, c.take, c.two, `${{ good: '✓ ', bad: '✗ ' }[c.evidence.tone] || ''}${c.evidence.text}`, c.costText, c.handOffText].map(cell)))}

In every row two holders are also possible after a pause of a holder: its lease ends, and it does not know that before it resumes.

${shown('cost-safety.svg', 'What an acquire and a release cost, logarithmic, by safety class, with the faults after which two clients held the lock')}${shown('pause.svg', 'A holder is paused, another client is granted the lock, and the first one\'s stale write is accepted by one store and refused by the other')}## What this run found

${model.findings.map((f) => `- ${f}`).join('\n')}

${model.counted}

## What is said about locks, and what was measured

${model.tally} Size: how often each set-up was run, or how many samples the smallest figure rests on. The condition of a claim that is true only under one stands with its figures. Source: where it is said, in these or similar words.

${table(['', 'Claim', 'Verdict', '>Size', 'Source'], model.claims.map((c) => [`[${c.id}](#${c.id.toLowerCase()})`, plainCell(c.claim), `**${c.word}**`, c.size, plainCell(c.source || 'often said')]))}

<details><summary><b>The figures behind each verdict</b></summary>

${model.claims.map((c) => `#### ${c.id}\n\n${plainCell(c.claim)} **${c.word}**: ${plainCell(c.figure || 'the run has no rows for it')}.`).join('\n\n')}

</details>

## Details

${parts()}
How each was measured, and the rule of each verdict: [reference.html](reference.html).

<details><summary><b>Environment</b></summary>

${table(['', ''], [...Object.entries(env).map(([k, v]) => [plainCell(k), plainCell(v)]), ['seed', report.seed], ['duration', `${Math.round(report.seconds)} s`]])}

</details>
`;

let wrong = 0;
for (const [name, content] of Object.entries({ 'README.md': text, ...pictures })) {
  const file = join(folder, name);
  if (check !== '--check') {
    writeFileSync(file, content);
  } else if (!existsSync(file) || readFileSync(file, 'utf8') !== content) {
    console.log(`${file} is not what ${run} says: node bench/report/markdown.mjs ${run} ${folder} writes it anew`);
    wrong += 1;
  }
}
process.exit(wrong ? 1 : 0);
