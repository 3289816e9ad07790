import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { launch } from '../src/supervisor/launch.js';
import { planTests, type TestProcess } from './plan.js';
import { seed } from './support/seed.js';

// The tests load what the gateway does, so they run where it would. tap must not have begun before.
const said = await launch();
const { t } = await import('tap');
if (said !== null) t.comment(said);

const directory = import.meta.dirname;
/**
 * A process that takes longer hangs. Some wait for the disk in each of their tests, and have taken ten times as long on
 * a machine whose disk others kept busy.
 */
const processTimeoutMs = 600_000;
/** It is told of a shorter time, so that it says itself which test hangs. */
const ownTimeoutMs = processTimeoutMs - 30_000;

const isQuick = process.argv.includes('--quick');
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));

// tap's own runner puts hooks into every process that a test starts, gateways too, through NODE_OPTIONS; they are for
// measuring coverage and cost more than most of the files do.
const withoutHooks = ['-u', 'NODE_OPTIONS'];
const node = [
  `TAP_TIMEOUT=${ownTimeoutMs / 1000}`,
  ...(isQuick ? ['TEST_QUICK=1'] : []),
  process.execPath,
  '--enable-source-maps',
];

/** Runs one process, with its tests below its name. @returns when it has ended */
function spawnTests({ name, files }: TestProcess): Promise<unknown> {
  const isAlone = name === files[0];
  // tap names folders after the arguments, which must not be too long for the file system.
  const args = isAlone ? [join(directory, name)] : [join(directory, 'together.js'), name];
  const told = isAlone ? [] : [`TEST_FILES=${files.join()}`];
  const options = { buffered: true, timeout: processTimeoutMs };
  return t.spawn('env', [...withoutHooks, ...told, ...node, ...args], options, name);
}

const found = (readdirSync(directory, { recursive: true }) as string[]).filter(
  (file) => file.endsWith('.test.js') && !/^(?:stress|platforms|clients)\//.test(file),
);
const { together, alone } = planTests(found, { wanted, isQuick });
t.comment(
  `${[...together, ...alone].reduce((sum, { files }) => sum + files.length, 0)} test files, SEED=${seed}`,
);

// Each process has a time of its own; tap would end a part that is run by itself after 30 s.
t.setTimeout(0);
t.jobs = availableParallelism() + 1;
await Promise.all(together.map(spawnTests));
t.jobs = 1;
for (const each of alone) await spawnTests(each);
