import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { protocols as protocolNames } from '../src/config/words.js';
import { textProtocols } from '../src/conversation/request.js';
import { videoFormats } from '../src/video/task.js';
import { lockOf, packages } from './clients/install.js';

/** Most lines that a file may have. */
const maxLines = 600;

/** The repository, from `dist*` where this file runs compiled. */
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Folders of `protocols/` that belong to no operation: each is a part of its own. */
const sharedFormats = ['protocols/credentials', 'protocols/error-formats', 'protocols/openai-shared'];

const protocols = ['protocols', ...sharedFormats];

const everything = ['attempts', 'config', 'errors', 'http', 'keys', ...protocols, 'routes', 'wire'];

/**
 * Who may know whom. A part is a folder of `src/`, a file in it, or one of `sharedFormats`. Any other name with a slash is
 * one file, of which only types may be taken.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  wire: ['errors'],
  conversation: ['errors', 'wire'],
  media: ['wire', 'errors'],
  schema: ['errors', 'wire'],
  http: ['wire', 'errors'],
  upstream: ['wire', 'errors'],
  stream: ['config/types', 'conversation', 'protocols/error-formats', 'wire', 'errors'],
  config: ['conversation', 'errors', 'schema', 'upstream/origin', 'wire'],
  'protocols/credentials': ['wire', 'errors', 'config/types'],
  'protocols/error-formats': ['wire', 'errors', 'config/types'],
  'protocols/openai-shared': ['conversation', 'protocols/error-formats', 'wire', 'errors'],
  protocols: ['conversation', ...sharedFormats, 'media', 'schema', 'wire', 'errors', 'config/types'],
  store: ['errors', 'config/types', 'wire'],
  video: [
    'conversation',
    'media',
    'protocols/error-formats',
    'schema',
    'store',
    'wire',
    'errors',
    'config/types',
  ],
  attempts: [
    'config/types',
    'errors',
    'flow/call',
    'flow/services',
    'metrics',
    'protocols/error-formats',
    'stream',
    'upstream',
    'video',
    'wire',
  ],
  keys: ['errors', 'config/types', 'store', 'wire'],
  limits: ['errors', 'config/types', 'store/accounts', 'store/shares', 'store/store', 'wire'],
  usage: ['errors', 'metrics', 'config/types', 'store', 'conversation', 'wire'],
  metrics: ['errors', 'config/types', 'conversation/usage', 'wire'],
  admin: [
    'errors',
    'http',
    'keys',
    'metrics',
    'config/resolve',
    'config/types',
    'store',
    'usage',
    'video',
    'wire',
  ],
  console: ['metrics/live-state'],
  routes: [...protocols, 'schema', 'errors', 'config/types', 'video/task'],
  openapi: ['routes', 'schema', ...protocols, 'errors', 'video', 'config/types'],
  flow: [
    'attempts',
    'config/types',
    'conversation',
    'errors',
    'http',
    'keys',
    'limits',
    'metrics',
    ...protocols,
    'routes',
    'schema',
    'store/accounts',
    'store/owned',
    'stream',
    'upstream',
    'usage',
    'video',
    'wire',
  ],
  gateway: [...everything, 'flow', 'limits', 'metrics', 'store', 'upstream', 'usage', 'video'],
  worker: [...everything, 'gateway', 'limits', 'supervisor', 'schema'],
  supervisor: [
    'admin',
    'config',
    'errors',
    'keys',
    'limits',
    'metrics',
    'openapi',
    'store',
    'upstream',
    'usage',
    'wire',
  ],
  command: ['config', 'errors', 'keys', 'store', 'supervisor'],
  main: ['command'],
  manual: [
    'config',
    'protocols/credentials',
    'protocols/error-formats',
    'errors',
    'metrics',
    'openapi',
    'routes',
    'wire',
  ],
  simulator: [],
};

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function files(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

const statement =
  /^(?:import|export)\s+(type\s)?[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm;

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(statement)].map(([, typeOnly, from, bare, dynamic]) => ({
    from: file,
    to: from ?? bare ?? dynamic ?? '',
    typeOnly: typeOnly !== undefined,
  }));
}

/** `src/http/router.ts` -> `http`; `src/errors.ts` -> `errors`; `src/protocols/credentials/…` -> `protocols/credentials`. */
function partOf(path: string): string {
  const [first = '', second] = path.replace(/^src\//, '').split('/');
  const shared = `${first}/${second}`;
  if (sharedFormats.includes(shared)) return shared;
  return first.replace(/\.(tsx?|js)$/, '');
}

const sources = files('src');
const imports = sources.flatMap(importsOf);

/** The path under `src/`, without its ending, that a relative import leads to. */
function targetOf({ from, to }: Import): string {
  return relative(join(root, 'src'), resolve(root, dirname(from), to)).replace(/\.js$/, '');
}

test('no file passes its line limit', async (t) => {
  for (const file of [...sources, ...files('test'), ...files('bench')]) {
    const lines = readFileSync(join(root, file), 'utf8').split('\n').length - 1;
    if (lines > maxLines) t.fail(`${file} has ${lines} lines`);
  }
  t.ok(sources.length > 50, `${sources.length} sources`);
});

test('every part has its arrows, and every arrow its part', async (t) => {
  t.same(
    [...new Set(sources.map(partOf))].filter((part) => !(part in arrows)),
    [],
  );
});

test('imports follow the arrows', async (t) => {
  let seen = 0;
  for (const each of imports.filter(({ to }) => to.startsWith('.'))) {
    const target = targetOf(each);
    const from = partOf(each.from);
    const to = partOf(target);
    if (from === to) continue;
    seen++;
    const allowed = arrows[from] ?? [];
    if (allowed.includes(to)) continue;
    if (each.typeOnly && allowed.includes(target)) continue;
    t.fail(`${each.from} imports ${target}`);
  }
  t.ok(seen > 50, `${seen} imports between parts`);
});

test('no file reaches itself by what it imports, types included', async (t) => {
  const known = new Map(sources.map((file) => [relative('src', file).replace(/\.tsx?$/, ''), file]));
  const next = new Map<string, string[]>();
  for (const each of imports.filter(({ to }) => to.startsWith('.'))) {
    const target = known.get(targetOf(each));
    if (target !== undefined) next.set(each.from, [...(next.get(each.from) ?? []), target]);
  }
  const done = new Set<string>();
  const look = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) t.fail([...way.slice(way.indexOf(file)), file].join(' > '));
    if (done.has(file) || way.includes(file)) return;
    for (const target of next.get(file) ?? []) look(target, [...way, file]);
    done.add(file);
  };
  for (const file of sources) look(file, []);
  t.equal(done.size, sources.length);
});

test('only http knows uWebSockets.js', async (t) => {
  for (const { from, to } of imports) {
    if (to === 'uWebSockets.js' && partOf(from) !== 'http') t.fail(`${from} imports ${to}`);
  }
  t.ok(imports.some(({ to }) => to === 'uWebSockets.js'));
});

test('heads of requests to upstreams are made of checked lines, and in one file', async (t) => {
  const makers = sources.filter((file) => /\bas HeadLines\b/.test(readFileSync(join(root, file), 'utf8')));
  t.strictSame(makers, ['src/wire/head.ts']);
});

test('no protocol knows another, and the flow loads no config', async (t) => {
  for (const each of imports.filter(({ to }) => to.startsWith('.'))) {
    const [, protocol] = /^src\/protocols\/([^/]+)\//.exec(each.from) ?? [];
    const [, other] = /^protocols\/([^/]+)\//.exec(targetOf(each)) ?? [];
    const isShared = sharedFormats.includes(`protocols/${other}`);
    if (protocol !== undefined && other !== undefined && protocol !== other && !isShared) {
      t.fail(`${each.from} imports ${targetOf(each)}`);
    }
  }
  t.pass();
});

test('the text protocols have the same files', async (t) => {
  const filesOf = (protocol: string) =>
    ['request', 'answer', 'stream'].map((folder) =>
      files(`src/protocols/${protocol}/${folder}`)
        .map((file) => basename(file))
        .sort(),
    );
  const [first = '', ...others] = readdirSync(join(root, 'src/protocols')).filter((name) =>
    existsSync(join(root, 'src/protocols', name, 'request/encode.ts')),
  );
  t.equal(others.length + 1, textProtocols.length);
  for (const other of others) t.strictSame(filesOf(other), filesOf(first), other);
});

test('the flow compares nothing with the name of a protocol or a video format', async (t) => {
  // An operation and a variant of a video's content are called as these two are.
  const names = protocolNames.filter((name) => name !== 'realtime' && name !== 'video');
  const comparison = new RegExp(`(?:[!=]==? ?|case )'(?:${[...names, ...videoFormats].join('|')})'`);
  for (const file of sources.filter((each) => partOf(each) === 'flow')) {
    const found = comparison.exec(readFileSync(join(root, file), 'utf8'));
    if (found !== null) t.fail(`${file}: ${found[0]}`);
  }
  t.pass();
});

test('the request path has no package but uWebSockets.js, typebox, types, and ws toward upstreams', async (t) => {
  const pathParts = [
    'http',
    'wire',
    'upstream',
    'stream',
    'schema',
    ...protocols,
    'attempts',
    'keys',
    'media',
    'video',
    'flow',
  ];
  for (const { from, to, typeOnly } of imports) {
    if (!pathParts.includes(partOf(from)) || to.startsWith('.') || to.startsWith('node:') || typeOnly)
      continue;
    if (to === 'ws' && partOf(from) === 'upstream') continue;
    if (to !== 'uWebSockets.js' && !to.startsWith('typebox')) t.fail(`${from} imports ${to}`);
  }
  t.pass();
});

test("the console's page has nothing but its libraries, and the server takes nothing from it", async (t) => {
  const libraries = ['preact', 'preact/hooks', '@preact/signals', 'uplot'];
  let seen = 0;
  for (const each of imports) {
    const isOfPage = partOf(each.from) === 'console';
    if (isOfPage) seen++;
    if (isOfPage && !each.to.startsWith('.') && !libraries.includes(each.to)) {
      t.fail(`${each.from} imports ${each.to}`);
    }
    if (!isOfPage && each.to.startsWith('.') && partOf(targetOf(each)) === 'console') {
      t.fail(`${each.from} imports ${each.to}`);
    }
  }
  t.ok(seen > 20, `${seen} imports of the page`);
});

test('the simulator has nothing but Node and ws', async (t) => {
  for (const each of imports.filter(({ from }) => partOf(from) === 'simulator')) {
    const isOwn = each.to.startsWith('.') && partOf(targetOf(each)) === 'simulator';
    if (!isOwn && each.to !== 'ws' && !each.to.startsWith('node:')) t.fail(`${each.from} imports ${each.to}`);
  }
  t.pass();
});

test("the lock of each list of clients' packages was made of that list", async (t) => {
  for (const name of Object.keys(packages) as (keyof typeof packages)[])
    t.doesNotThrow(() => lockOf(name), `make test/clients/locks/${name}.json again`);
});
