import type { Steps } from '../wire/steps.js';
import { type GaugeFamily, type GaugeName, gaugeFamilies } from './families.js';
import type { ProcessGauges } from './process-gauges.js';
import { SeriesTable } from './series.js';
import { mapValues, NumberTable, type SeriesCaps } from './tables.js';

/** Every state of a target; it is in one of them at a time. */
export const targetStates = ['closed', 'cooling', 'open', 'half-open'] as const;

/** A target at one worker. */
interface TargetGauge {
  /** The upstream's name, and the model's name there. */
  readonly upstream: string;
  readonly model: string;
  readonly state: (typeof targetStates)[number];
  /** Requests under way, and those that have ended of late. */
  readonly inFlight: number;
  readonly calls: number;
}

/** Gauges of several series. */
type Labelled =
  | 'gateway_event_loop_delay_seconds'
  | 'gateway_targets'
  | 'gateway_target_state'
  | 'gateway_target_in_flight';

/** The numbers of a moment. */
export interface GaugeReadings {
  /** Those of gauges without labels. */
  readonly numbers: Readonly<Record<Exclude<GaugeName, Labelled>, number>>;
  readonly loopDelay: ProcessGauges['loopDelay'];
  /** Those of thousands of models are looked at one by one. */
  readonly targets: Iterable<TargetGauge>;
}

export type GaugeTables = Readonly<Record<GaugeName, NumberTable>>;

/** Empty tables of every gauge. */
export function createGaugeTables(caps: Pick<SeriesCaps, 'numbers'>): GaugeTables {
  return mapValues<GaugeName, GaugeFamily, NumberTable>(
    gaugeFamilies,
    ({ labels }) => new NumberTable(new SeriesTable(labels, caps.numbers)),
  );
}

/**
 * Joins a gauge with what its series has already, as its family says. What is no finite number is left out.
 * @param number of the series
 */
export function joinGauge(tables: GaugeTables, name: GaugeName, number: number, value: number): void {
  if (!Number.isFinite(value)) return;
  const { values } = tables[name];
  const before = values[number] as number;
  values[number] = gaugeFamilies[name].merge === 'sum' ? before + value : Math.max(before, value);
}

/** Tables of what was read. */
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
  const { told, states } = yield* notable(targets, Math.floor(caps.numbers / seriesOfTarget));
  for (const state of targetStates) put('gateway_targets', states[state], state);
  for (const { upstream: name, model, state, inFlight } of told) {
    const target = targetLabel(name, model);
    put('gateway_target_in_flight', inFlight, target);
    for (const each of targetStates) {
      put('gateway_target_state', each === state ? 1 : 0, target, each);
    }
    yield;
  }
  return tables;
}

/** A target has a series for each state; a part of a family's room is not for series of their own. */
const seriesOfTarget = targetStates.length + 1;

interface NotableTargets {
  readonly told: readonly TargetGauge[];
  /** How many of all targets are in each state. */
  readonly states: Readonly<Record<TargetGauge['state'], number>>;
}

/**
 * As many targets as are told: all, or those that are ill first, then the busiest. What is told of a target is of it alone.
 */
function* notable(targets: Iterable<TargetGauge>, most: number): Steps<NotableTargets> {
  const states = { closed: 0, cooling: 0, open: 0, 'half-open': 0 };
  let told: TargetGauge[] = [];
  let count = 0;
  for (const target of targets) {
    count++;
    states[target.state]++;
    if (told.push(target) > 2 * most) told = busiest(told, most);
    yield;
  }
  return { told: count <= most ? told : busiest(told, most), states };
}

function busiest(targets: readonly TargetGauge[], most: number): TargetGauge[] {
  const isIll = ({ state }: TargetGauge): number => (state === 'closed' ? 0 : 1);
  return targets
    .filter((target) => isIll(target) || target.inFlight > 0 || target.calls > 0)
    .sort((a, b) => isIll(b) - isIll(a) || b.inFlight - a.inFlight || b.calls - a.calls)
    .slice(0, most);
}

/**
 * What a target is called in labels, lines and pages. Names of models have slashes; one in that of an upstream is written
 * as in URLs, so that no two targets have one name.
 */
export function targetLabel(upstream: string, model: string): string {
  return `${upstream.replaceAll('%', '%25').replaceAll('/', '%2F')}/${model}`;
}
