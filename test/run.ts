import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { t } from 'tap';

const directory = import.meta.dirname;
/** A process that takes longer hangs: even on a machine that others keep busy. */
const processTimeoutMs = 300_000;
/** More files than this would take turns in one process while others have nothing left to do. */
const filesOfProcess = 12;
/** Their files wait most and take longest: started first, they are not waited for at the end. */
const first = ['supervisor', 'main', 'console', 'faults', 'flow', 'store', 'e2e'];

/**
 * Folders whose files share one process: they test functions, and starting a process for each took longer than their
 * tests do.
 */
const shared = [
  'admin/page',
  'wire',
  'schema',
  'conversation',
  'media',
  'dialects',
  'dialects/models',
  'keys',
  'limits',
  'metrics',
  'openapi',
  'config',
  'routing',
  'stream',
  'protocols/audio',
  'protocols/chat',
  'protocols/completions',
  'protocols/embeddings',
  'protocols/generate-content',
  'protocols/images',
  'protocols/messages',
  'protocols/moderations',
  'protocols/rerank',
  'protocols/responses',
  'video',
  'video/faces',
  'video/wires',
  'http',
  'upstream',
  'flow',
  'simulator',
  'simulator/media',
];
/** It measures the memory of its process. */
const alone = ['simulator/faults.test.js'];

/** @returns the paths of all test files below this one, without its directory, longest first as far as is known */
function findTests(): string[] {
  const rank = (file: string) => {
    const index = first.findIndex((start) => file.startsWith(start));
    return index === -1 ? first.length : index;
  };
  return (readdirSync(directory, { recursive: true }) as string[])
    .filter((file) => file.endsWith('.test.js') && !file.startsWith('stress'))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

// tap's own runner puts hooks into every process that a test starts, gateways too, through NODE_OPTIONS; they are for
// measuring coverage and cost more than most of the files do.
const plainNode = [
  ...['-u', 'NODE_OPTIONS'],
  // tap in the process has a limit of its own, which it tells the one here to keep to.
  `TAP_TIMEOUT=${processTimeoutMs / 1000}`,
  process.execPath,
  '--enable-source-maps',
];

const wanted = process.argv.slice(2);
/** Files by the process that runs them, and how many of each folder there are so far. */
const runs = new Map<string, string[]>();
const counts = new Map<string, number>();
for (const file of findTests()) {
  if (wanted.length > 0 && !wanted.some((part) => file.includes(part))) continue;
  const folder = dirname(file);
  const isShared = shared.includes(folder) && !alone.includes(file);
  const number = counts.get(folder) ?? 0;
  counts.set(folder, number + 1);
  const name = isShared ? `${folder} ${Math.floor(number / filesOfProcess) + 1}` : file;
  runs.set(name, [...(runs.get(name) ?? []), file]);
}
t.jobs = availableParallelism() + 1;
for (const [name, files] of runs) {
  const args = name === files[0] ? [join(directory, name)] : [join(directory, 'together.js'), ...files];
  void t.spawn('env', [...plainNode, ...args], { buffered: true, timeout: processTimeoutMs }, name);
}
