import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { seed } from './support/seed.js';

// Runs the quick tests, or those that the arguments name, and lists what of `src` no process of theirs has run.

interface Place {
  readonly start: { readonly line: number };
  readonly end: { readonly line: number };
}

/** A file as istanbul tells it. c8 makes each line a statement. */
interface FileCoverage {
  readonly path: string;
  readonly statementMap: Readonly<Record<string, Place>>;
  readonly s: Readonly<Record<string, number>>;
  readonly fnMap: Readonly<Record<string, { readonly name: string; readonly decl: Place }>>;
  readonly f: Readonly<Record<string, number>>;
}

interface Unrun {
  readonly path: string;
  readonly all: number;
  readonly lines: readonly number[];
  readonly functions: readonly string[];
}

const root = join(import.meta.dirname, '../..');

async function run(args: readonly string[], more: NodeJS.ProcessEnv, output: number): Promise<number> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...more },
    stdio: ['ignore', output, 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

function unrunOf(file: FileCoverage): Unrun {
  const lines = Object.entries(file.statementMap);
  const never = lines.filter(([id]) => file.s[id] === 0).map(([, { start }]) => start.line);
  const functions = Object.entries(file.fnMap)
    .filter(([id]) => file.f[id] === 0)
    .map(([, { name, decl }]) => `${name} (${decl.start.line})`);
  return { path: relative(root, file.path), all: lines.length, lines: never, functions };
}

/** Line numbers as ranges: `3, 7-9`. */
function rangesOf(lines: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const line of lines) {
    const last = ranges.at(-1);
    if (last !== undefined && line === last[1] + 1) last[1] = line;
    else ranges.push([line, line]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}

function list(files: readonly Unrun[]): string {
  const worstFirst = files
    .filter(({ lines, functions }) => lines.length + functions.length > 0)
    .sort((one, other) => other.lines.length - one.lines.length);
  const entries = worstFirst.map(({ path, all, lines, functions }) =>
    [
      `${path}: ${lines.length} of ${all} lines: ${rangesOf(lines)}`,
      ...(functions.length === 0 ? [] : [`  functions: ${functions.join(', ')}`]),
    ].join('\n'),
  );
  const sum = (count: (file: Unrun) => number): number => files.reduce((all, each) => all + count(each), 0);
  const never = sum(({ lines }) => lines.length);
  const share = ((100 * never) / sum(({ all }) => all)).toFixed(1);
  return [...entries, '', `${never} lines of ${files.length} files never run, ${share} %`, ''].join('\n');
}

const wanted = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'coverage-'));
try {
  const log = join(folder, 'tests.tap');
  const tests = [join(import.meta.dirname, 'run.js'), ...(wanted.length === 0 ? ['--quick'] : wanted)];
  const code = await run(tests, { NODE_V8_COVERAGE: join(folder, 'v8') }, openSync(log, 'w'));
  if (code !== 0) {
    const failed = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /^ *not ok /.test(line));
    process.stderr.write(`Tests failed, SEED=${seed}:\n${failed.join('\n')}\n`);
    process.exitCode = 1;
  }
  // It comes with tap, which measures by it too.
  const c8 = createRequire(createRequire(import.meta.url).resolve('tap')).resolve('c8/bin/c8.js');
  const report = ['report', '--temp-directory', join(folder, 'v8'), '--report-dir', folder, '--merge-async'];
  const chosen = [
    '--reporter',
    'json',
    '--exclude-after-remap',
    '--include',
    'src/**',
    '--src',
    'src',
    '--all',
  ];
  await run([c8, ...report, ...chosen], {}, openSync(join(folder, 'report.log'), 'w'));
  const told = JSON.parse(readFileSync(join(folder, 'coverage-final.json'), 'utf8')) as object;
  process.stdout.write(list(Object.values(told).map(unrunOf)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
