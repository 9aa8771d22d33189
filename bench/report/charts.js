// Charts by ECharts, where it is there; each is drawn from rows only, when its part is opened. A backend has the colour
// and the mark that it has everywhere; its variants differ by the line, and by hollow marks.
(function charts() {
  const shown = new Map();  // id -> {chart, option}
  const waiting = new Map();  // id -> [option, height]
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const narrow = () => document.documentElement.clientWidth < 760;
  const font = { fontFamily: 'system-ui, Roboto, "DejaVu Sans", sans-serif', color: css('--ink') };
  const base = () => ({
    animation: false, textStyle: { ...font, color: css('--soft') }, tooltip: { confine: true, valueFormatter: short },
    legend: { show: false }, grid: { left: 8, right: 24, top: 36, bottom: 30, containLabel: true },
  });
  const axis = (more) => ({
    axisLabel: { color: css('--soft'), hideOverlap: true }, splitLine: { lineStyle: { color: css('--line') } },
    axisLine: { lineStyle: { color: css('--line') } }, nameTextStyle: { color: css('--soft'), align: 'left' }, ...more,
  });
  const logarithmic = (name, more = {}) => axis({ type: 'log', name: `${name}, logarithmic`, minorTick: { show: true }, ...more,
    axisLabel: { color: css('--soft'), hideOverlap: true, formatter: short } });
  const across = (name) => ({ name, nameLocation: 'middle', nameGap: 26, nameTextStyle: { color: css('--soft'), align: 'center' } });

  // --- one look for each lock

  const dashes = ['solid', [7, 4], [2, 3], [10, 3, 2, 3], [4, 2, 1, 2, 1, 2], [14, 4], [1, 2]];
  function looks(all) {
    const seen = new Map();
    const count = new Map();
    for (const r of all) {
      if (seen.has(label(r))) continue;
      const nth = r.variant === 'default' ? 0 : 1 + (count.get(r.backend) || 0);
      if (nth) count.set(r.backend, nth);
      seen.set(label(r), { name: label(r), backend: r.backend, hollow: nth > 0, dash: dashes[nth % dashes.length] });
    }
    return seen;
  }
  function styled(look, more) {
    const colour = css(colourOf(look.backend));
    return { name: look.name, type: 'line', symbol: `path://${markOf(look.backend)}`, symbolSize: 10, connectNulls: true,
      showAllSymbol: true, lineStyle: { width: 2, color: colour, type: look.dash },
      itemStyle: { color: look.hollow ? css('--card') : colour, borderColor: colour, borderWidth: look.hollow ? 1.5 : 0 }, ...more };
  }
  // What each line is; a click hides it. It is as high as it has to be: nothing is on a second page.
  function keys(id, look, charts) {
    const place = document.getElementById(id);
    for (const one of [...look.values()].sort((a, b) => a.name.localeCompare(b.name))) {
      const dash = one.dash === 'solid' ? '' : ` stroke-dasharray="${one.dash.join(' ')}"`;
      const key = document.createElement('button');
      key.type = 'button';
      key.setAttribute('aria-pressed', 'true');
      key.innerHTML = `<svg viewBox="0 0 30 14" aria-hidden="true"><path d="M0 7H30" stroke="var(${colourOf(one.backend)})" stroke-width="2"${dash}/>`
        + `${mark(one.backend, 15, 7, 11, one.hollow)}</svg>${escape(one.name)}`;
      key.addEventListener('click', () => {
        key.setAttribute('aria-pressed', String(key.getAttribute('aria-pressed') !== 'true'));
        for (const chart of charts) if (shown.has(chart)) shown.get(chart).chart.dispatchAction({ type: 'legendToggleSelect', name: one.name });
      });
      place.appendChild(key);
    }
  }

  // --- drawing

  function show(id, option, height) {
    const element = document.getElementById(id);
    if (!option || typeof echarts === 'undefined') {
      const part = element.closest('.part');
      const figure = element.closest('figure');
      if (!option && part && !part.querySelector('table')) {
        (figure && part.querySelectorAll('.chart').length > 1 ? figure : part).remove();
      } else (figure || element).remove();
      return;
    }
    if (height) element.style.height = `${height}px`;
    waiting.set(id, option);
  }
  function draw() {
    for (const [id, option] of waiting) {
      const element = document.getElementById(id);
      if (!element || element.clientWidth === 0) continue;
      const chart = echarts.init(element, null, { renderer: 'svg' });
      chart.setOption({ ...base(), ...option() });
      shown.set(id, { chart, option });
      waiting.delete(id);
    }
  }
  const again = () => shown.forEach(({ chart, option }) => chart.setOption({ ...base(), ...option() }, true));
  const resize = (size) => shown.forEach(({ chart }) => { if (chart.getDom().clientWidth > 0) chart.resize(size); });

  // --- the charts

  const latency = pick({ scenario: 'C1', metric: 'p50' }).sort((a, b) => b.value - a.value);
  const least = 10 ** Math.floor(Math.log10(Math.min(...latency.map((r) => r.value))));
  const p99 = (r) => (one({ scenario: 'C1', metric: 'p99', backend: r.backend, variant: r.variant }) || {}).value;
  show('chart-latency', latency.length && (() => ({
    grid: { left: 4, right: 18, top: 8, bottom: 34, containLabel: true },
    tooltip: { confine: true, formatter: (p) => `${escape(p.name)}<br>${p.seriesName}: ${short(p.value[0])} us` },
    xAxis: logarithmic('us', { ...across('us, logarithmic'), min: least }),
    yAxis: axis({ type: 'category', data: latency.map(label), splitLine: { show: true, lineStyle: { color: css('--line') } },
      axisLabel: { color: css('--ink'), width: narrow() ? 116 : 280, overflow: 'break', interval: 0, lineHeight: narrow() ? 11 : 13, fontSize: narrow() ? 10.5 : 12 } }),
    series: [
      { name: 'p99', type: 'scatter', symbolSize: 6, data: latency.map((r, i) => ({ name: label(r), value: [p99(r), i],
        symbol: `path://${markOf(r.backend)}`, itemStyle: { color: css(colourOf(r.backend)), opacity: 0.6 } })) },
      { name: 'p50', type: 'scatter', symbolSize: 13,
        data: latency.map((r, i) => ({ name: label(r), value: [r.value, i], symbol: `path://${markOf(r.backend)}`,
          itemStyle: { color: isFloor(r) ? css('--card') : css(colourOf(r.backend)), borderColor: css(colourOf(r.backend)), borderWidth: 1.5 } })) },
    ],
  })), 60 + 30 * latency.length);

  function lines(id, all, x, y, look = looks(all)) {
    const places = [...new Set(all.map((r) => r.x))].sort((a, b) => a - b);
    show(id, all.length && (() => ({
      tooltip: { trigger: 'axis', confine: true, valueFormatter: (v) => short(v), order: 'valueDesc', textStyle: { fontSize: 12 } },
      xAxis: axis({ type: 'category', data: places.map(short), ...across(x) }),
      yAxis: y(),
      series: [...look.values()].map((one) => styled(one, {
        data: places.map((p) => (all.find((r) => label(r) === one.name && r.x === p) || {}).value) })),
    })));
    return look;
  }

  const rates = pick({ scenario: 'C1', metric: 'cycles per second' });
  keys('keys-throughput', lines('chart-throughput', rates, 'locks in flight', () => logarithmic('locks per second')), ['chart-throughput']);

  const crowd = (metric) => pick({ scenario: 'C3', metric }).filter((r) => r.value > 0);
  const crowds = looks([...crowd('requests per hand-off'), ...crowd('time per hand-off')]);
  lines('chart-requests', crowd('requests per hand-off'), 'waiters', () => logarithmic('requests'), crowds);
  lines('chart-handoff', crowd('time per hand-off'), 'waiters', () => logarithmic('us'), crowds);
  keys('keys-waiting', crowds, ['chart-requests', 'chart-handoff']);

  // All exclusive is a share of 0 % readers.
  const readers = pick({ scenario: 'C23', metric: 'grants per second' })
    .map((r) => (r.variant === 'all exclusive' ? { ...r, variant: 'default', x: 0 } : r));
  keys('keys-readers', lines('chart-readers', readers, 'readers, %; 0: all exclusive', () => logarithmic('grants per second')), ['chart-readers']);

  const delays = pick({ scenario: 'C32', metric: 'p50' });
  keys('keys-network', lines('chart-network', delays, 'delay each way, ms', () => logarithmic('us')), ['chart-network']);

  const ttl = pick({ scenario: 'C31' });
  const ttls = looks(ttl);
  const byTtl = (id, metric, name) => lines(id, ttl.filter((r) => r.metric === metric), 'ttl, ms', () => axis({ type: 'value', name, min: 0 }), ttls);
  byTtl('chart-ttl-crash', 'time without a holder after SIGKILL', 'ms');
  byTtl('chart-ttl-pause', 'leases lost to pauses of the process', '% of the leases');
  if (ttl.length) {
    keys('keys-ttl', ttls, ['chart-ttl-crash', 'chart-ttl-pause']);
    const longest = Math.max(...ttl.map((r) => r.x));
    document.getElementById('ttl-note').textContent = `Ttls of up to ${short(longest)} ms`
      + `${longest < 10000 ? '; the default of Holdfast, 10,000 ms, was not part of this run.' : '; the default of Holdfast is 10,000 ms.'}`;
  }

  draw();
  for (const part of document.querySelectorAll('.part')) part.addEventListener('toggle', draw);
  window.addEventListener('resize', () => resize());
  window.addEventListener('beforeprint', () => resize({ width: 660 }));
  window.addEventListener('afterprint', () => resize());
  dark.addEventListener('change', again);
})();
