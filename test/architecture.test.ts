import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

/** Most lines that a file may have. */
const maxLines = 400;

/** The repository, from `dist*` where this file runs compiled. */
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

const everything = [
  'config',
  'conversation',
  'dialects',
  'errors',
  'http',
  'keys',
  'protocols',
  'routes',
  'routing',
];

/**
 * Who may know whom. A part is a folder of `src/`, or a file in it. A name with a slash is one file, of which only
 * types may be taken.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  'request-id': [],
  wire: ['errors'],
  conversation: ['errors'],
  media: ['errors'],
  validator: [],
  schema: ['errors', 'validator', 'wire'],
  http: ['wire', 'errors', 'request-id'],
  upstream: ['wire', 'errors'],
  stream: ['conversation', 'wire', 'errors'],
  config: ['errors', 'upstream/origin', 'validator'],
  dialects: ['errors', 'config/types'],
  protocols: ['conversation', 'dialects', 'media', 'schema', 'wire', 'errors', 'config/types'],
  store: ['errors', 'config/types'],
  video: ['conversation', 'media', 'schema', 'store', 'wire', 'errors', 'config/types'],
  routing: ['errors', 'config/types'],
  keys: ['errors', 'config/types', 'store/store'],
  limits: ['errors', 'config/types', 'store/shares', 'store/store'],
  usage: ['errors', 'metrics', 'request-id', 'config/types', 'store/store', 'conversation/usage'],
  metrics: ['errors', 'config/types', 'admin/live-state'],
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
  routes: ['dialects', 'protocols', 'schema', 'errors', 'config/types', 'video/task'],
  openapi: ['routes', 'schema', 'protocols', 'dialects', 'errors', 'video', 'config/types'],
  flow: [
    'admin/live-state',
    'config/types',
    'conversation',
    'dialects',
    'errors',
    'http',
    'keys',
    'limits',
    'metrics',
    'protocols',
    'request-id',
    'routes',
    'routing',
    'schema',
    'stream',
    'upstream',
    'usage',
    'video',
    'wire',
  ],
  gateway: [
    ...everything,
    'flow',
    'ledger',
    'limits',
    'metrics',
    'store',
    'tidy',
    'upkeep',
    'upstream',
    'usage',
    'video',
  ],
  upkeep: ['config/types', 'store', 'video'],
  ledger: ['config/types', 'metrics', 'store/store', 'usage'],
  log: [],
  tidy: [],
  worker: [...everything, 'gateway', 'limits', 'log', 'supervisor', 'validator'],
  supervisor: [
    'admin',
    'config',
    'errors',
    'keys',
    'limits',
    'log',
    'metrics',
    'openapi',
    'store',
    'upstream',
    'usage',
  ],
  main: ['config', 'errors', 'keys', 'log', 'supervisor'],
  simulator: [],
};

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function files(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
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

/** `src/http/router.ts` -> `http`; `src/errors.ts` -> `errors`. */
function partOf(path: string): string {
  const [first = ''] = path.replace(/^src\//, '').split('/');
  return first.replace(/\.(ts|js)$/, '');
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

test('only http knows uWebSockets.js', async (t) => {
  for (const { from, to } of imports) {
    if (to === 'uWebSockets.js' && partOf(from) !== 'http') t.fail(`${from} imports ${to}`);
  }
  t.ok(imports.some(({ to }) => to === 'uWebSockets.js'));
});

test('no protocol knows another, and the flow loads no config', async (t) => {
  for (const each of imports.filter(({ to }) => to.startsWith('.'))) {
    const [, protocol] = /^src\/protocols\/([^/]+)\//.exec(each.from) ?? [];
    const [, other] = /^protocols\/([^/]+)\//.exec(targetOf(each)) ?? [];
    if (protocol !== undefined && other !== undefined && protocol !== other) {
      t.fail(`${each.from} imports ${targetOf(each)}`);
    }
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
    'dialects',
    'protocols',
    'routing',
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

test("the console's page and the server take nothing from each other but the types of what it is told", async (t) => {
  const page = 'admin/page/';
  let seen = 0;
  for (const each of imports.filter(({ to }) => to.startsWith('.'))) {
    const target = targetOf(each);
    const isOfPage = each.from.startsWith(`src/${page}`);
    if (isOfPage) seen++;
    if (isOfPage === target.startsWith(page)) continue;
    if (isOfPage && each.typeOnly && target === 'admin/live-state') continue;
    t.fail(`${each.from} imports ${target}`);
  }
  for (const { from, to } of imports.filter(({ from }) => from.startsWith(`src/${page}`))) {
    if (!to.startsWith('.') && !(to === 'uplot' && from === `src/${page}uplot.d.ts`)) {
      t.fail(`${from} imports ${to}`);
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
