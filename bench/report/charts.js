// Charts by ECharts, where it is there; each is drawn from rows only.
(function charts() {
  const drawn = [];
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = () => (dark.matches
    ? ['#6cc3df', '#f0a35e', '#8fd694', '#c9a2f2', '#f2d26b', '#f28fb0', '#a7b4c2',
      '#4f8df0', '#d9775f', '#5fcfc0', '#e3e37a', '#b0894f']
    : ['#1c6e8c', '#b4641e', '#3d8b4f', '#7650ad', '#a98600', '#b03a68', '#6b7785',
      '#2350b0', '#8a2f1b', '#12857a', '#5d6b13', '#4a3320']);
  const base = () => ({
    animation: false, color: palette(), textStyle: { fontFamily: 'system-ui, Roboto, "DejaVu Sans", sans-serif', color: css('--soft') },
    tooltip: { confine: true, valueFormatter: short }, grid: { left: 8, right: 24, top: 36, bottom: 8, containLabel: true },
    legend: { top: 0, left: 0, itemWidth: 18, textStyle: { color: css('--soft') } },
  });
  const axis = (more) => ({
    axisLabel: { color: css('--soft'), hideOverlap: true }, splitLine: { lineStyle: { color: css('--line') } },
    axisLine: { lineStyle: { color: css('--line') } }, nameTextStyle: { color: css('--soft') }, ...more,
  });
  const logarithmic = (name, more = {}) => axis({ type: 'log', name, minorTick: { show: true }, ...more,
    axisLabel: { color: css('--soft'), hideOverlap: true, formatter: short } });

  function show(id, option, height) {
    const element = document.getElementById(id);
    if (!option || typeof echarts === 'undefined') {
      element.outerHTML = option ? '' : '<p class="lead">Not part of this run.</p>';
      return;
    }
    if (height) element.style.height = `${height}px`;
    const chart = echarts.init(element, null, { renderer: 'svg' });
    chart.setOption({ ...base(), ...option() });
    drawn.push([chart, option]);
  }

  const latency = pick({ scenario: 'C1', metric: 'p50' }).sort((a, b) => b.value - a.value);
  const least = 10 ** Math.floor(Math.log10(Math.min(...latency.map((r) => r.value))));
  show('chart-latency', latency.length && (() => ({
    grid: { left: 8, right: 40, top: 36, bottom: 26, containLabel: true },
    xAxis: logarithmic('us', { nameLocation: 'end', nameGap: 8, min: least, startValue: least }),
    yAxis: axis({ type: 'category', data: latency.map(label) }),
    series: [
      { name: 'p50', type: 'bar', barMaxWidth: 17,
        label: { show: true, position: 'insideRight', color: dark.matches ? '#10151b' : '#fff', fontSize: 11, formatter: (p) => short(p.value) },
        data: latency.map((r) => (isFloor(r)
          ? { value: r.value, itemStyle: { color: css('--line'), borderColor: css('--soft') }, label: { color: css('--ink') } }
          : { value: r.value })) },
      { name: 'p99', type: 'scatter', symbolSize: 9, itemStyle: { color: palette()[1] },
        data: latency.map((r) => (one({ scenario: 'C1', metric: 'p99', backend: r.backend, variant: r.variant }) || {}).value) },
    ],
  })), 60 + 30 * latency.length);

  const rates = pick({ scenario: 'C1', metric: 'cycles per second' });
  const loads = [...new Set(rates.map((r) => r.x))].sort((a, b) => a - b);
  const who = [...new Set(rates.map(label))];
  show('chart-throughput', rates.length && (() => ({
    legend: { ...base().legend, type: 'scroll', right: 0 },
    tooltip: { trigger: 'axis', confine: true, valueFormatter: (v) => `${short(v)} /s` },
    xAxis: axis({ type: 'category', data: loads.map((n) => `${short(n)} in flight`) }),
    yAxis: logarithmic(''),
    series: who.map((name) => {
      const floor = name.includes('floor:');
      return { name, type: 'line', symbolSize: 8, connectNulls: true, lineStyle: { width: 2, type: floor ? 'dashed' : 'solid' },
        data: loads.map((n) => (rates.find((r) => label(r) === name && r.x === n) || {}).value) };
    }),
  })));

  function crowd(id, metric) {
    const all = pick({ scenario: 'C3', metric });
    const sizes = [...new Set(all.map((r) => r.x))].sort((a, b) => a - b);
    const names = [...new Set(all.map(label))];
    show(id, all.length && (() => ({
      legend: { ...base().legend, type: 'scroll', right: 0 },
      tooltip: { trigger: 'axis', confine: true, valueFormatter: short },
      grid: { left: 8, right: 24, top: 40, bottom: 24, containLabel: true },
      xAxis: axis({ type: 'category', data: sizes.map(short), name: 'waiters', nameLocation: 'middle', nameGap: 26 }),
      yAxis: logarithmic(''),
      series: names.map((name) => ({ name, type: 'line', symbolSize: 8, lineStyle: { width: 2 },
        data: sizes.map((n) => (all.find((r) => label(r) === name && r.x === n && r.value > 0) || {}).value) })),
    })));
  }
  crowd('chart-requests', 'requests per hand-off');
  crowd('chart-handoff', 'time per hand-off');

  const ttl = pick({ scenario: 'C31' });
  const ttls = [...new Set(ttl.map((r) => r.x))].sort((a, b) => a - b);
  function byTtl(id, metric, name) {
    const rows = ttl.filter((r) => r.metric === metric);
    show(id, rows.length && (() => ({
      legend: { ...base().legend, type: 'scroll', right: 0 },
      tooltip: { trigger: 'axis', confine: true, valueFormatter: short },
      grid: { left: 8, right: 24, top: 40, bottom: 24, containLabel: true },
      xAxis: axis({ type: 'category', data: ttls.map(short), name: 'ttl, ms', nameLocation: 'middle', nameGap: 26 }),
      yAxis: axis({ type: 'value', name }),
      series: [...new Set(rows.map(label))].map((who) => ({ name: who, type: 'line', symbolSize: 8, lineStyle: { width: 2 },
        data: ttls.map((x) => (rows.find((r) => label(r) === who && r.x === x) || {}).value) })),
    })));
  }
  byTtl('chart-ttl-crash', 'time without a holder after SIGKILL', 'ms');
  byTtl('chart-ttl-pause', 'leases lost to pauses of the process', '%');

  window.addEventListener('resize', () => drawn.forEach(([chart]) => chart.resize()));
  dark.addEventListener('change', () => drawn.forEach(([chart, option]) => chart.setOption({ ...base(), ...option() }, true)));
})();
