import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DemoGateway, startGateway } from './support/gateway.js';

// Measures the sources of a checkout and what one call takes: `npm run house`. With a path it measures the sources there alone.

const here = fileURLToPath(new URL('.', import.meta.url));
const [other] = process.argv.slice(2);
const root = other === undefined ? resolve(here, '..', '..') : resolve(other);

interface Source {
  readonly path: string;
  readonly text: string;
  /** Without comments and texts. */
  readonly code: string;
}

/** Comments, and what may hold their signs: texts and regular expressions. */
const skipped =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|(?<=[=(,:&|!?]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//g;

/** @param left folders that are none of it */
function sourcesIn(folder: string, left: readonly string[] = []): readonly Source[] {
  return (readdirSync(join(root, folder), { recursive: true }) as string[])
    .filter((path) => /\.tsx?$/.test(path) && !left.some((each) => path.startsWith(`${each}/`)))
    .map((path) => {
      const text = readFileSync(join(root, folder, path), 'utf8');
      const code = text.replace(skipped, (found) => (found.startsWith('/') ? '' : "''"));
      return { path, text, code };
    });
}

const linesOf = ({ text }: Source): number => text.split('\n').length - 1;
const codeLinesOf = ({ code }: Source): number =>
  code.split('\n').filter((line) => line.trim() !== '').length;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0;
}

function countIn(sources: readonly Source[], pattern: RegExp): number {
  return sum(sources.map(({ code }) => code.match(pattern)?.length ?? 0));
}

/** Names of a list in braces count one by one. */
function exportedIn(sources: readonly Source[]): number {
  const declared =
    /^export (?:default )?(?:declare |abstract |async )*(?:const|let|function|class|interface|type|enum)\b(?! *\{)/gm;
  const lists = sources.flatMap(({ code }) => [...code.matchAll(/^export (?:type )?\{([^}]*)\}/gm)]);
  const listed = lists.map(([, names = '']) => names.split(',').filter((name) => name.trim() !== '').length);
  return countIn(sources, declared) + sum(listed);
}

/** `as X`, but for `as const` and the names of imports and exports. */
function castsIn(sources: readonly Source[]): number {
  const named = /^(?:import|export)\b(?:[^;{]*\{[^}]*\}|[^;{]*) from[^;]*;|^export \{[^}]*\};/gm;
  return countIn(
    sources.map((source) => ({ ...source, code: source.code.replace(named, '') })),
    /(?<=[\w)\]}'>] )as (?!const\b)(?=[A-Za-z{[('])/g,
  );
}

/** @returns groups of files of which each imports every other one, if by way of others. @param types count, too */
function cyclesIn(sources: readonly Source[], types: boolean): number {
  const paths = new Set(sources.map(({ path }) => path));
  const imports = new Map(
    sources.map(({ path, text }) => {
      const found = [...text.matchAll(/^(?:import|export)\b([^;]*?)\bfrom '(\.[^']*)';/gm)];
      const wanted = found.filter(([, what = '']) => types || !isOfTypes(what));
      const to = wanted.map(([, , name = '']) => join(dirname(path), name.replace(/\.js$/, '.ts')));
      return [path, to.filter((each) => paths.has(each))] as const;
    }),
  );
  const reach = new Map([...paths].map((path) => [path, reached(path, imports)]));
  const isInCycle = (path: string): boolean => reach.get(path)?.has(path) === true;
  const groups = [...paths].filter(isInCycle).map((path) =>
    [...(reach.get(path) ?? [])]
      .filter((to) => reach.get(to)?.has(path))
      .sort()
      .join(),
  );
  return new Set(groups).size;
}

/** Whether what is imported is types alone. */
function isOfTypes(what: string): boolean {
  if (/^\s*type\b/.test(what)) return true;
  const names = /^\s*\{([^}]*)\}\s*$/
    .exec(what)?.[1]
    ?.split(',')
    .filter((name) => name.trim() !== '');
  return names?.every((name) => /^\s*type /.test(name)) === true;
}

function reached(from: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [...(imports.get(from) ?? [])];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    waiting.push(...(imports.get(path) ?? []));
  }
  return seen;
}

const calls = 100;
const body = JSON.stringify({
  model: 'sim-text',
  messages: [{ role: 'user', content: 'a word '.repeat(146) }],
  max_tokens: 8,
});

async function callTimes({ url }: DemoGateway, times: number): Promise<void> {
  for (let call = 0; call < times; call++) {
    const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
    await answer.text();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
  }
}

interface Place {
  readonly callFrame: { readonly url: string };
  readonly selfSize: number;
  readonly children: readonly Place[];
}

/** @returns bytes of a profile that functions of the gateway, or what they have called, have made objects of */
function bytesOfOurs({ callFrame: { url }, selfSize, children }: Place, isOurs = false): number {
  const isSource = url.includes('/dist/src/');
  if (isSource && url.includes('/src/simulator/')) return 0;
  const isHere = isOurs || isSource;
  return (isHere ? selfSize : 0) + sum(children.map((child) => bytesOfOurs(child, isHere)));
}

/** @returns bytes of the objects that the gateway makes for a chat call of 1 KB, in the steady state */
async function bytesOfCall(): Promise<number> {
  const ends: (() => unknown)[] = [];
  const gateway = await startGateway(
    { teardown: (end) => ends.push(end as () => unknown) },
    { demo: 'chat' },
  );
  await callTimes(gateway, 300);
  const inspector = new Session();
  inspector.connect();
  const figures: number[] = [];
  // Other work of the gateway, such as the first look at its tasks, may fall into one round, but not into all.
  for (let round = 0; round < 3; round++) {
    await inspector.post('HeapProfiler.startSampling', {
      // Every object is a sample.
      samplingInterval: 1,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
    await callTimes(gateway, calls);
    const { profile } = await inspector.post('HeapProfiler.stopSampling');
    figures.push(bytesOfOurs(profile.head) / calls);
  }
  for (const end of ends.reverse()) await end();
  return Math.min(...figures);
}

function tell(what: string, figure: string | number): void {
  process.stdout.write(`${what.padEnd(48)} ${figure}\n`);
}

const gateway = sourcesIn('src', ['simulator', 'console']);
const lines = gateway.map(linesOf);
process.stdout.write(`${relative(process.cwd(), root) || '.'}: src without simulator and console\n`);
tell('files', gateway.length);
tell('lines', sum(lines));
tell('lines of code', sum(gateway.map(codeLinesOf)));
tell('median of lines a file', median(lines));
tell('exported names', exportedIn(gateway));
tell('casts, but for `as const`', castsIn(gateway));
tell('casts in flow', castsIn(gateway.filter(({ path }) => path.startsWith('flow/'))));
tell('import cycles at run time', cyclesIn(gateway, false));
tell('import cycles, types too', cyclesIn(gateway, true));
tell('lines of test', sum(sourcesIn('test').map(linesOf)));
if (other === undefined) {
  tell('bytes of the objects made for a 1 KB chat call', Math.round(await bytesOfCall()));
  process.stdout.write('files of src that it crosses:\n');
  process.stdout.write(execFileSync(process.execPath, [join(here, 'crossed.js')], { encoding: 'utf8' }));
}
process.exit();
