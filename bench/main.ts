import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../src/supervisor/launch.js';
import type { Bench, Cores, WorkReport } from './bench.js';
import type { Contender } from './contenders/contender.js';
import { direct } from './contenders/direct.js';
import { gateway, unreachedLimits } from './contenders/gateway.js';
import { haproxy } from './contenders/haproxy.js';
import { nginx } from './contenders/nginx.js';
import { namedRivals } from './contenders/rivals.js';
import { autocannon } from './load/autocannon.js';
import { wrk } from './load/wrk.js';
import { describeMachine, type Machine } from './machine.js';
import { type Options, readOptions, usage } from './options.js';
import { stopEverything } from './proc.js';
import { preamble, preambleMarkdown, reportMarkdown, reportText } from './report.js';
import { works } from './works/index.js';

const write = (text: string): boolean => process.stdout.write(text);

function pinning(machine: Machine, options: Options): Cores {
  const [contender, load, upstream] = options.cores;
  if (!machine.taskset || machine.cores < 2 || contender === undefined || load === undefined) {
    return { contender: null, load: null, upstream: null };
  }
  return { contender, load, upstream: upstream ?? load };
}

/** The compiled tree with this file also contains the gateway. */
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));

function contendersOf(machine: Machine, options: Options): Contender[] {
  const all: Contender[] = [direct];
  if (existsSync(main)) {
    all.push(gateway({ name: 'gateway', main, logs: false }));
    if (options.withLogs) all.push(gateway({ name: 'gateway+logs', main, logs: true }));
    if (options.withLimits) {
      all.push(gateway({ name: 'gateway+limits', main, logs: false, limits: unreachedLimits }));
      all.push(gateway({ name: 'gateway-ledger', main, logs: false, ledger: false }));
    }
    if (options.withConsole) {
      all.push(gateway({ name: 'gateway+console', main, logs: false, console: true }));
    }
  } else {
    write(`missing   ${main}: the gateway is not compiled\n`);
  }
  if (options.against) all.push(gateway({ name: 'against', main: resolve(options.against), logs: false }));
  if (machine.nginx) all.push(nginx(machine.nginx));
  if (machine.haproxy) all.push(haproxy(machine.haproxy, machine.openFiles));
  const sayMissing = (sentence: string): boolean => write(`missing   ${sentence}\n`);
  all.push(...namedRivals(options.contenders ?? [], sayMissing));
  return all.filter(({ name }) => options.contenders?.includes(name) ?? true);
}

/** Returns the commit that is checked out, and whether files differ from it. */
function revision(): string {
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--dirty', '--abbrev=12'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : 'unknown';
}

/** Overwrites its last line on a terminal, and prints nothing elsewhere. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}\r`);
}

async function run(options: Options, directory: string): Promise<void> {
  const machine = describeMachine();
  const bench: Bench = {
    options,
    machine,
    cores: pinning(machine, options),
    directory,
    load: machine.wrk ? wrk(machine.wrk) : autocannon,
    contenders: contendersOf(machine, options),
    main,
    progress,
  };
  write(
    options.readme
      ? preambleMarkdown(bench, revision(), new Date().toISOString().slice(0, 10))
      : preamble(bench),
  );
  const chosen = works.filter(({ name, byDefault }) => options.only?.includes(name) ?? byDefault);
  const unknown = options.only?.filter((name) => !works.some((work) => work.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`There is no work named ${unknown.join(', ')}.`);
  const reports: WorkReport[] = [];
  for (const work of chosen) {
    const report = await work.run(bench);
    write(options.readme ? reportMarkdown(report) : reportText(report));
    reports.push(report);
  }
  if (!options.json) return;
  const { cores, load } = bench;
  const file = { machine, options, cores, load: load.name, reports };
  writeFileSync(options.json, `${JSON.stringify(file, null, 2)}\n`);
}

let options: Options | null = null;
try {
  options = readOptions(process.argv.slice(2));
  const said = await launch();
  if (said !== null) write(`${said}\n`);
} catch (error) {
  write(`${error instanceof Error ? error.message : String(error)}\n\n`);
  process.exitCode = 1;
}
if (options) {
  const directory = mkdtempSync(join(tmpdir(), 'model-gateway-bench-'));
  process.on('exit', () => {
    stopEverything();
    rmSync(directory, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
  try {
    await run(options, directory);
  } catch (error) {
    write(`\nThe bench failed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
  process.exit();
} else {
  write(`${usage}\n`);
}
