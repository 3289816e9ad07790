import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Steps } from '../wire/steps.js';
import { type GaugeFamily, type GaugeName, gaugeFamilies } from './families.js';
import { SeriesTable } from './series.js';
import { mapValues, NumberTable, type SeriesCaps } from './tables.js';

/** The states of a target, which is in one of them at a time. */
export const targetStates = ['closed', 'cooling', 'open', 'half-open'] as const;

/** A target at one worker. */
interface TargetGauge {
  /** The upstream's name, and its name of the model. */
  readonly upstream: string;
  readonly model: string;
  readonly state: (typeof targetStates)[number];
  /** Requests in flight, and those that ended recently. */
  readonly inFlight: number;
  readonly calls: number;
}

/** Gauges with labels. */
type Labelled =
  | 'gateway_event_loop_delay_seconds'
  | 'gateway_targets'
  | 'gateway_target_state'
  | 'gateway_target_in_flight';

/** A reading of all gauges. */
export interface GaugeReadings {
  /** Values of the gauges without labels. */
  readonly numbers: Readonly<Record<Exclude<GaugeName, Labelled>, number>>;
  readonly loopDelay: ProcessGauges['loopDelay'];
  /** Iterated in steps, since there may be thousands. */
  readonly targets: Iterable<TargetGauge>;
}

export type GaugeTables = Readonly<Record<GaugeName, NumberTable>>;

/** Creates empty tables for every gauge. */
export function createGaugeTables(caps: Pick<SeriesCaps, 'numbers'>): GaugeTables {
  return mapValues<GaugeName, GaugeFamily, NumberTable>(
    gaugeFamilies,
    ({ labels }) => new NumberTable(new SeriesTable(labels, caps.numbers)),
  );
}

/**
 * Combines a value with that of its series, as its family specifies. NaN and infinities are ignored.
 * @param number number of the series
 */
export function joinGauge(tables: GaugeTables, name: GaugeName, number: number, value: number): void {
  if (!Number.isFinite(value)) return;
  const { values } = tables[name];
  const before = values[number] as number;
  values[number] = gaugeFamilies[name].merge === 'sum' ? before + value : Math.max(before, value);
}

/** Fills tables from a reading. */
export function* gaugeSteps(
  { numbers, loopDelay, targets }: GaugeReadings,
  caps: SeriesCaps,
): Steps<GaugeTables> {
  const tables = createGaugeTables(caps);
  const put = (name: GaugeName, value: number, a?: string, b?: string): void =>
    joinGauge(tables, name, tables[name].series.find(a, b), value);
  for (const [name, value] of Object.entries(numbers)) put(name as GaugeName, value);
  for (const stat of ['p50', 'p99', 'max'] as const)
    put('gateway_event_loop_delay_seconds', loopDelay[stat], stat);
  const { reported, states } = yield* notable(targets, Math.floor(caps.numbers / seriesOfTarget));
  for (const state of targetStates) put('gateway_targets', states[state], state);
  for (const { upstream: name, model, state, inFlight } of reported) {
    const target = targetLabel(name, model);
    put('gateway_target_in_flight', inFlight, target);
    for (const each of targetStates) {
      put('gateway_target_state', each === state ? 1 : 0, target, each);
    }
    yield;
  }
  return tables;
}

/** Series per target: one for each state, plus the family's reserve for `other`. */
const seriesOfTarget = targetStates.length + 1;

interface NotableTargets {
  readonly reported: readonly TargetGauge[];
  /** The number of all targets in each state. */
  readonly states: Readonly<Record<TargetGauge['state'], number>>;
}

/**
 * Selects the targets to report: all, or up to a bound those that are not closed first, then the busiest.
 */
function* notable(targets: Iterable<TargetGauge>, most: number): Steps<NotableTargets> {
  const states = { closed: 0, cooling: 0, open: 0, 'half-open': 0 };
  let reported: TargetGauge[] = [];
  let count = 0;
  for (const target of targets) {
    count++;
    states[target.state]++;
    if (reported.push(target) > 2 * most) reported = busiest(reported, most);
    yield;
  }
  return { reported: count <= most ? reported : busiest(reported, most), states };
}

function busiest(targets: readonly TargetGauge[], most: number): TargetGauge[] {
  const isIll = ({ state }: TargetGauge): number => (state === 'closed' ? 0 : 1);
  return targets
    .filter((target) => isIll(target) || target.inFlight > 0 || target.calls > 0)
    .sort((a, b) => isIll(b) - isIll(a) || b.inFlight - a.inFlight || b.calls - a.calls)
    .slice(0, most);
}

/**
 * The name of a target in labels, ledger lines and pages. Model names contain slashes; a slash in an upstream's name is
 * percent-encoded, so that names are unique.
 */
export function targetLabel(upstream: string, model: string): string {
  return `${upstream.replaceAll('%', '%25').replaceAll('/', '%2F')}/${model}`;
}

/**
 * The current state of a process. Not by prom-client, whose gauges are those of the process that serves the request, with
 * the event loop delay since the start or the previous read. These are sent to the primary and combined there.
 */
interface ProcessGauges {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Delay of timers in seconds, over at least the last half minute and at most the last minute. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number };
}

/** Milliseconds between two samples of the event loop delay. */
const resolutionMs = 20;
const nanosPerSecond = 1e9;
/** Length of a period of the event loop delay; each period is read while the next one is recorded. */
const periodMs = 30_000;

/** Resident memory of this process in bytes; null if no file descriptor is free to read it. */
export function residentMemory(): number | null {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
}

/** Starts measuring this process, until closed. Does not keep the process alive. */
export function watchProcess() {
  let current = monitorEventLoopDelay({ resolution: resolutionMs });
  let next = monitorEventLoopDelay({ resolution: resolutionMs });
  current.enable();
  next.enable();
  let turnedAt = performance.now();
  let residentBytes = 0;
  // The recorded value is the time between two samples.
  const late = (nanos: number): number => Math.max(0, nanos / nanosPerSecond - resolutionMs / 1000);
  return {
    /**
     * Reads everything. Concurrent readers do not affect each other.
     * @param now milliseconds of `performance.now()`
     */
    read(now = performance.now()): ProcessGauges {
      if (now - turnedAt >= periodMs) {
        current.reset();
        [current, next] = [next, current];
        turnedAt = now;
      }
      residentBytes = residentMemory() ?? residentBytes;
      const loopDelay = {
        p50: late(current.percentile(50)),
        p99: late(current.percentile(99)),
        max: late(current.max),
      };
      return { residentBytes, heapBytes: getHeapStatistics().used_heap_size, loopDelay };
    },
    close(): void {
      current.disable();
      next.disable();
    },
  };
}
