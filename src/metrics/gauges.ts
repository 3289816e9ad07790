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

interface UpstreamGauges {
  /** Connections of any state, and those of them without and with a request. */
  readonly open: number;
  readonly idle: number;
  readonly busy: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
}

/** Where the numbers of the moment come from; each is asked once for a snapshot. */
export interface GaugeSources {
  openRequests(): number;
  /** WebSocket sessions. */
  openSockets(): number;
  bufferedBytes(): number;
  /** What sockets hold: what is counted, and what was measured beyond it. */
  socketMemory(): { readonly bytes: number; readonly unseenBytes: number };
  ledgerWaiting(): number;
  /** Bytes that these take up. */
  ledgerWaitingBytes(): number;
  /** Milliseconds for which the oldest of them has waited. */
  ledgerLagMs(): number;
  /** Request lines that are not in the log yet. */
  logWaiting(): number;
  upstream(): UpstreamGauges;
  targets(): readonly TargetGauge[];
  process(): ProcessGauges;
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

/** Asks every source. */
export function readGauges(sources: GaugeSources, caps: SeriesCaps): GaugeTables {
  const tables = createGaugeTables(caps);
  const put = (name: GaugeName, value: number, a?: string, b?: string): void =>
    joinGauge(tables, name, tables[name].series.find(a, b), value);
  const upstream = sources.upstream();
  const ownProcess = sources.process();
  put('gateway_open_requests', sources.openRequests());
  put('gateway_open_sockets', sources.openSockets());
  put('gateway_buffered_bytes', sources.bufferedBytes());
  const sockets = sources.socketMemory();
  put('gateway_socket_counted_bytes', sockets.bytes);
  put('gateway_socket_unseen_bytes', sockets.unseenBytes);
  put('gateway_ledger_waiting_entries', sources.ledgerWaiting());
  put('gateway_ledger_waiting_bytes', sources.ledgerWaitingBytes());
  put('gateway_ledger_lag_seconds', sources.ledgerLagMs() / 1000);
  put('gateway_log_waiting_lines', sources.logWaiting());
  put('gateway_upstream_connections_open', upstream.open);
  put('gateway_upstream_connections_idle', upstream.idle);
  put('gateway_upstream_connections_busy', upstream.busy);
  put('gateway_upstream_requests_waiting', upstream.waiting);
  put('gateway_resident_memory_bytes', ownProcess.residentBytes);
  put('gateway_heap_used_bytes', ownProcess.heapBytes);
  for (const stat of ['p50', 'p99', 'max'] as const) {
    put('gateway_event_loop_delay_seconds', ownProcess.loopDelay[stat], stat);
  }
  const targets = sources.targets();
  for (const state of targetStates)
    put('gateway_targets', targets.filter((target) => target.state === state).length, state);
  for (const { upstream: name, model, state, inFlight } of notable(targets, caps.numbers / seriesOfTarget)) {
    const target = targetLabel(name, model);
    put('gateway_target_in_flight', inFlight, target);
    for (const each of targetStates) {
      put('gateway_target_state', each === state ? 1 : 0, target, each);
    }
  }
  return tables;
}

/** A target has a series for each state; a part of a family's room is not for series of their own. */
const seriesOfTarget = targetStates.length + 1;

/** As many targets as are told: those that are ill first, then the busiest. What is told of a target is of it alone. */
function notable(targets: readonly TargetGauge[], most: number): readonly TargetGauge[] {
  if (targets.length <= most) return targets;
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
