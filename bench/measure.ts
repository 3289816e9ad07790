import { setTimeout as wait } from 'node:timers/promises';
import type { Cores } from './bench.js';
import { coreBusyMs, cpuMs, type Process, processTree } from './proc.js';

/** Shares of one core, from CPU times in the middle of a run. */
export interface Shares {
  readonly contender: number;
  readonly load: number;
  readonly upstream: number;
  /** Share of other processes on the contender's core, and on the load client's; 0 without pinning. */
  readonly foreignContender: number;
  readonly foreignLoad: number;
}

const marginMs = 150;

interface Times {
  readonly at: number;
  readonly values: readonly number[];
}

/** Five times: of the three processes, then of the contender's and the load client's core. */
function times(processes: readonly (Process | null)[], cores: Cores): Times {
  const ofProcesses = processes.map((one) => (one ? cpuMs(processTree(one.pid)) : 0));
  const ofCores = [cores.contender, cores.load].map((core) => (core === null ? 0 : coreBusyMs(core)));
  return { at: performance.now(), values: [...ofProcesses, ...ofCores] };
}

/** Reads CPU times shortly after the start and shortly before the end of a run, while all of its processes live. */
export async function shares(
  seconds: number,
  parts: { readonly contender: Process | null; readonly load: Process; readonly upstream: Process },
  cores: Cores,
): Promise<Shares> {
  const processes = [parts.contender, parts.load, parts.upstream];
  await wait(marginMs);
  const before = times(processes, cores);
  await wait(seconds * 1000 - 2 * marginMs);
  const after = times(processes, cores);
  const span = after.at - before.at;
  const taken = after.values.map((value, at) => (value - (before.values[at] ?? 0)) / span);
  const [contender = 0, load = 0, upstream = 0, busy = 0, loadBusy = 0] = taken;
  const onLoadCore = load + (cores.upstream === cores.load ? upstream : 0);
  return {
    contender,
    load,
    upstream,
    foreignContender: Math.max(0, busy - contender),
    foreignLoad: Math.max(0, loadBusy - onLoadCore),
  };
}
