// What the report knows of each backend: the backend.json in its folder.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../backends');
const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('backend.json')).sort();

export const backends = Object.fromEntries(files.map((file) => {
  const name = dirname(file).split('/').pop();
  return [name, JSON.parse(readFileSync(join(folder, file), 'utf8'))];
}));
const colours = (which) => Object.entries(backends).map(([name, of]) => `--${name}: ${of[which]};`).join(' ');
export const coloured = (css) => css.replaceAll('@LIGHT_COLOURS@', colours('light')).replaceAll('@DARK_COLOURS@', colours('dark'));
