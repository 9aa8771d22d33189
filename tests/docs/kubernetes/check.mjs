// Whether manifests fit the API of Kubernetes: every field is one of its types (TypeScript refuses those that it does not know)
// and its value passes the schema.
//
// usage: node check.mjs NODE_MODULES [--selftest] FILE...
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const modules = path.resolve(process.argv[2]);
const require = createRequire(path.join(modules, 'none.js'));
const ts = require('typescript');
const yaml = require('yaml');

const selftest = process.argv.includes('--selftest');
const files = process.argv.slice(3).filter((word) => word !== '--selftest');

/** The documents of all files, as {where, manifest}. */
function manifests() {
  const all = [];
  for (const file of files) {
    for (const document of yaml.parseAllDocuments(readFileSync(file, 'utf8'), { strict: true })) {
      if (document.errors.length > 0) throw document.errors[0];
      all.push({ where: path.basename(file), manifest: document.toJS() });
    }
  }
  return all;
}

const module = (m) => `kubernetes-models/${m.apiVersion}/${m.kind}`;

/** What the schema says against it; empty: nothing. */
function againstSchema({ where, manifest }) {
  const { [manifest.kind]: Model } = require(module(manifest));
  const { apiVersion, kind, ...rest } = manifest;
  try {
    new Model(rest).validate();
    return [];
  } catch (error) {
    return [`${where}: ${error.message}`];
  }
}

/** What the types say against them: a field that is unknown or missing, a value that is none of the possible ones. */
function againstTypes(all) {
  const lines = all.map(({ manifest }, i) => {
    const name = path.join(modules, module(manifest));
    return `import { I${manifest.kind} as T${i} } from ${JSON.stringify(name)};\n` +
      `export const m${i}: T${i} & {apiVersion: string, kind: string} = ${JSON.stringify(manifest)};\n`;
  });
  const source = path.join(modules, 'manifests.ts');
  const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], moduleResolution: ts.ModuleResolutionKind.Node10,
    module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2020 };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile;
  host.getSourceFile = (name, ...more) =>
    name === source ? ts.createSourceFile(name, lines.join(''), ts.ScriptTarget.ES2020) : read.call(host, name, ...more);
  return ts.getPreEmitDiagnostics(ts.createProgram([source], options, host))
    .map((d) => `${d.file === undefined ? '' : path.basename(d.file.fileName)}: ${ts.flattenDiagnosticMessageText(d.messageText, '\n')}`);
}

const complaints = (all) => [...all.flatMap(againstSchema), ...againstTypes(all)];

/** Each of these has to be found. */
function spoilt(all) {
  const copy = (change) => {
    const changed = structuredClone(all);
    const pods = changed.filter(({ manifest }) => manifest.spec !== undefined)
      .map(({ manifest }) => (manifest.spec.jobTemplate ?? manifest).spec.template.spec);
    change(pods[0]);
    return changed;
  };
  return {
    'a field that does not exist': copy((pod) => { pod.containers[0].comand = ['true']; }),
    'a field in the wrong place': copy((pod) => { pod.containers[0].terminationGracePeriodSeconds = 60; }),
    'a number as text': copy((pod) => { pod.terminationGracePeriodSeconds = '60'; }),
    'a number that is no integer': copy((pod) => { pod.terminationGracePeriodSeconds = 1.5; }),
    'a container without a name': copy((pod) => { delete pod.containers[0].name; }),
  };
}

const all = manifests();
let wrong = complaints(all);
if (selftest) {
  wrong = Object.entries(spoilt(all)).filter(([, changed]) => complaints(changed).length === 0)
    .map(([what]) => `not found: ${what}`);
}
console.log([...wrong, `${all.length} manifests, ${wrong.length} complaints`].join('\n'));
process.exit(wrong.length > 0 || all.length === 0 ? 1 : 0);
