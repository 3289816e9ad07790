import { dirname } from 'node:path';

/** A process of a test run: its name in the report, and the test files that it runs one after the other. */
export interface TestProcess {
  readonly name: string;
  readonly files: readonly string[];
}

/** The processes of a run. */
interface TestPlan {
  /** They run beside one another. */
  readonly together: readonly TestProcess[];
  /** They run one at a time, after the others. */
  readonly alone: readonly TestProcess[];
}

/** More files than this would take turns in one process while others have nothing left to do. */
const filesOfProcess = 12;

/** Their files wait most and take longest: started first, they are not waited for at the end. */
const first = [
  'limits',
  'supervisor',
  'main',
  'console/browser',
  'faults',
  'flow',
  'store',
  'e2e',
  'console/playground',
  'simulator',
];

/**
 * Folders whose files share one process: they test functions, and starting a process for each took longer than their
 * tests do.
 */
const shared = new Set([
  'console',
  'console/config',
  'console/keys',
  'console/playground',
  'console/tasks',
  'console/usage',
  'wire',
  'schema',
  'conversation',
  'media',
  'keys',
  'limits',
  'manual',
  'metrics',
  'openapi',
  'config',
  'attempts',
  'stream',
  'protocols/audio',
  'protocols/chat',
  'protocols/completions',
  'protocols/credentials',
  'protocols/embeddings',
  'protocols/error-formats',
  'protocols/generate-content',
  'protocols/images',
  'protocols/messages',
  'protocols/models',
  'protocols/moderations',
  'protocols/rerank',
  'protocols/responses',
  'video',
  'video/client-formats',
  'video/upstream-formats',
  'http',
  'upstream',
  'flow',
  'simulator',
]);

/** They measure the memory of their process, or take minutes on a slow machine. */
const ownProcess = new Set([
  'flow/answer/backpressure.test.js',
  'limits/budget-property.test.js',
  'limits/shares-property.test.js',
  'limits/simulation.test.js',
  'protocols/generate-content/spelling.test.js',
  'simulator/faults/faults.test.js',
  'simulator/realtime/faults.test.js',
  'upstream/decode.test.js',
  'upstream/socket-reader.test.js',
]);

/** What they assert holds for a machine that does nothing else: times of answers, rates, memory. */
const timed = [
  'attacks/bodies-that-never-come',
  'attacks/burst-of-connections',
  'attacks/deaf-sockets',
  'attacks/idle-connections',
  'attacks/memory',
  'attacks/slow-bodies',
  'attacks/socket-memory',
  'attacks/stuck-worker',
  'faults/drain',
  'faults/failover',
  'faults/fleet/gateways',
  'faults/realtime-memory',
  'faults/reload',
  'faults/table/',
  'faults/database',
  'faults/tasks-commit',
  'faults/tasks-outage',
  'faults/worker-death',
  'flow/upstream/hedge',
  'flow/video/poll',
  'store/postgres-outage',
  'supervisor/budget',
  'supervisor/keys',
  'supervisor/limits',
  'supervisor/rolling',
  'supervisor/take-over',
  'upstream/timers',
];

/** What `npm test` leaves to the full run: whole processes, browsers, other programs, all SDKs, faults, most attacks. */
const slow = [
  'admin',
  'attacks',
  'console/browser',
  'console/playground/samples',
  'e2e',
  'faults',
  'flow',
  'main',
  'simulator/faults',
  'simulator/media/assets',
  'simulator/media/playback',
  'simulator/media/speech',
  'store',
  'supervisor',
  'usage',
];

/**
 * Of those, what it runs all the same: attacks that take a moment, the request flow inside one process, and the command
 * line once with SDKs.
 */
const quick = [
  'attacks/answers-nobody-asked-for',
  'attacks/answers-without-body',
  'attacks/broken-socket-message',
  'attacks/client-socket',
  'attacks/head-lines',
  'attacks/operators-that-leave',
  'attacks/refused-before-counted',
  'attacks/second-request',
  'attacks/socket-memory',
  'attacks/steering-members',
  'e2e/command-line',
  'flow/record/account',
  'flow/limits/admit',
  'flow/upstream/route.',
  'flow/responses-socket',
];

/**
 * @param found test files, as paths below the folder of tests
 * @param wanted parts of the paths of those that are to run; all where there are none
 */
export function planTests(
  found: readonly string[],
  { wanted, isQuick }: { readonly wanted: readonly string[]; readonly isQuick: boolean },
): TestPlan {
  const chosen = found.filter(
    (file) =>
      (wanted.length === 0 || wanted.some((part) => file.includes(part))) && (!isQuick || isOfQuick(file)),
  );
  const isTimed = (file: string) => timed.some((start) => file.startsWith(start));
  return {
    together: processesOf(chosen.filter((file) => !isTimed(file))),
    alone: processesOf(chosen.filter(isTimed)),
  };
}

function isOfQuick(file: string): boolean {
  const isOf = (start: string) => file.startsWith(start);
  return quick.some(isOf) || !slow.some(isOf);
}

function processesOf(files: readonly string[]): TestProcess[] {
  const processes = new Map<string, string[]>();
  const counts = new Map<string, number>();
  for (const file of [...files].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1))) {
    const folder = folderOf(file);
    const number = counts.get(folder) ?? 0;
    counts.set(folder, number + 1);
    const isShared = shared.has(folder) && !ownProcess.has(file);
    const name = isShared ? `${folder} ${Math.floor(number / filesOfProcess) + 1}` : file;
    processes.set(name, [...(processes.get(name) ?? []), file]);
  }
  return [...processes].map(([name, those]) => ({ name, files: those }));
}

/** The folder of a file; of those that hold few files each, the one above. */
function folderOf(file: string): string {
  return /^(?:flow|simulator|protocols\/[^/]+)(?=\/)/.exec(file)?.[0] ?? dirname(file);
}

function rankOf(file: string): number {
  const index = first.findIndex((start) => file.startsWith(start));
  return index === -1 ? first.length : index;
}
