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

/** Files of one process, which take turns: with more of them, others would have nothing left to do meanwhile. */
const filesOfProcess = 12;

/** Their files wait most and take longest: started first, they are not waited for at the end. */
const first = [
  'limits',
  'supervisor',
  'main',
  'upstream',
  'console/browser',
  'faults',
  'flow',
  'store',
  'e2e',
  'console/playground',
  'simulator',
  'http',
  'protocols',
];

/**
 * Each of their files has a process of its own: they start processes, measure memory, or take minutes on a slow machine.
 * All others share processes: starting one takes longer than the tests of most files do.
 */
const ownProcess = [
  'admin',
  'attacks',
  'console/browser',
  'e2e',
  'faults',
  'flow/answer/backpressure',
  'limits/budget-property',
  'limits/shares-property',
  'limits/simulation',
  'main',
  'package',
  'protocols/generate-content/spelling',
  'simulator/faults/faults',
  'simulator/realtime/faults',
  'store',
  'supervisor',
  'upstream/decode',
  'upstream/socket-reader',
  'usage',
];

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
  'store/postgres-outage',
  'supervisor/budget',
  'supervisor/limits',
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
  'package',
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
    const folder = file.slice(0, Math.max(0, file.indexOf('/'))) || 'files';
    const number = counts.get(folder) ?? 0;
    const isShared = !ownProcess.some((start) => file.startsWith(start));
    if (isShared) counts.set(folder, number + 1);
    const name = isShared ? `${folder} ${Math.floor(number / filesOfProcess) + 1}` : file;
    processes.set(name, [...(processes.get(name) ?? []), file]);
  }
  return [...processes].map(([name, those]) => ({ name, files: those }));
}

function rankOf(file: string): number {
  const index = first.findIndex((start) => file.startsWith(start));
  return index === -1 ? first.length : index;
}
