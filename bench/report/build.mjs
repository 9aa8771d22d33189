// Inlines ECharts, the licences of all that is in it, the style and the scripts into one page, so that it opens from
// a file with the network off. Usage: node build.mjs SOURCE NODE_MODULES OUTPUT
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { backends, coloured } from './backends.mjs';

const [source, modules, output] = process.argv.slice(2);
const read = (...path) => readFileSync(join(...path), 'utf8');

// "</script" inside a script would end it.
const inScript = (text) => text.replaceAll('</script', '<\\/script');
// Each asks to be kept with every copy.
const licences = [['echarts', 'NOTICE'], ['echarts', 'LICENSE'], ['zrender', 'LICENSE'], ['tslib', 'LICENSE.txt']];
const parts = {
  PAGE_CSS: coloured(read(source, 'page.css')),
  PAGE_JS: inScript(read(source, 'page.js')),
  PAGE_CHARTS: inScript(read(source, 'charts.js')),
  PAGE_MODEL: inScript(read(source, 'model.js')),
  PAGE_PICTURES: inScript(read(source, 'pictures.js')),
  BACKENDS: JSON.stringify(backends).replaceAll('<', '\\u003c'),
  ECHARTS: inScript(read(modules, 'echarts', 'dist', 'echarts.common.min.js')),
  ECHARTS_LICENCES: licences.map((file) => `== ${file.join('/')}\n${read(modules, ...file)}`).join('\n').replaceAll('--', '- -'),
};
const page = read(source, 'page.html').replace(/@([A-Z_]+)@/g, (all, name) => {
  if (!(name in parts)) throw new Error(`unknown part ${all}`);
  return parts[name];
});
writeFileSync(output, page);
