import type { HistoryView, LatencyView, LiveState } from '../../metrics/live-state.js';
import { bytes, count, dollars, duration, nothing, percent, rate } from '../format.js';
import { rateOf, type StateWindow, share } from '../rates.js';
import { costOfHour, lastKnown } from '../series.js';
import { useSession } from '../session.js';

/** The data of the tiles. */
interface Now {
  readonly state: LiveState;
  readonly window: StateWindow;
  readonly points: readonly HistoryView[];
}

interface Tile {
  /** In `data-stat`. */
  readonly name: string;
  readonly label: string;
  value(now: Now): number | null;
  text(value: number): string;
  /** A second line under the number. */
  more(now: Now): string;
}

type Latency = 'firstByte' | 'duration' | 'own';

function latency(now: Now, of: Latency, percentile: keyof LatencyView): number | null {
  return lastKnown(now.points, (point) => point[of][percentile]);
}

function latencyTile(name: string, label: string, of: Latency, main: keyof LatencyView): Tile {
  const others = (['p50', 'p95', 'p99'] as const).filter((each) => each !== main);
  return {
    name,
    label,
    value: (now) => latency(now, of, main),
    text: duration,
    more: (now) => others.map((each) => `${each} ${duration(latency(now, of, each))}`).join(' · '),
  };
}

const tiles: readonly Tile[] = [
  {
    name: 'requests-rate',
    label: 'Requests',
    value: ({ window, points }) =>
      rateOf(window, ({ totals }) => totals.requests) ??
      lastKnown(points, (point) => point.requestsPerSecond),
    text: rate,
    more: ({ window }) => {
      const refused = rateOf(window, ({ totals }) => totals.refusals);
      return refused === null ? nothing : `${rate(refused)} refused`;
    },
  },
  {
    name: 'errors-rate',
    label: 'Errors',
    value: ({ window, points }) =>
      rateOf(window, ({ totals }) => totals.errors) ?? lastKnown(points, (point) => point.errorsPerSecond),
    text: rate,
    more: ({ window }) => {
      const errors = rateOf(window, ({ totals }) => totals.errors) ?? 0;
      const part = share(errors, rateOf(window, ({ totals }) => totals.requests) ?? 0);
      return part === null ? nothing : `${percent(part)} of requests`;
    },
  },
  latencyTile('first-byte', 'First byte p50', 'firstByte', 'p50'),
  latencyTile('duration', 'Duration p95', 'duration', 'p95'),
  {
    ...latencyTile('own', 'Own overhead p50', 'own', 'p50'),
    more: (now) => `p99 ${duration(latency(now, 'own', 'p99'))}`,
  },
  {
    name: 'open-requests',
    label: 'Open requests',
    value: ({ state }) => state.now.openRequests,
    text: count,
    more: ({ state }) => `${count(state.now.openSockets)} WebSockets`,
  },
  {
    name: 'upstream-connections',
    label: 'Upstream connections',
    value: ({ state }) => state.now.upstreamConnections.open,
    text: count,
    more: ({ state }) => {
      const { busy, waiting } = state.now.upstreamConnections;
      return `${count(busy)} busy, ${count(waiting)} waiting`;
    },
  },
  {
    name: 'tokens-output-rate',
    label: 'Tokens out',
    value: ({ window, points }) =>
      rateOf(window, ({ totals }) => totals.tokens.output) ??
      lastKnown(points, (point) => point.outputTokensPerSecond),
    text: rate,
    more: ({ window }) => {
      const input = rateOf(window, ({ totals }) => totals.tokens.input);
      if (input === null) return nothing;
      const cached = share(rateOf(window, ({ totals }) => totals.tokens.cached) ?? 0, input);
      return cached === null ? `${rate(input)} in` : `${rate(input)} in, ${percent(cached)} cached`;
    },
  },
  {
    name: 'cost-hour',
    label: 'Cost, last hour',
    value: ({ points }) => costOfHour(points),
    text: dollars,
    more: ({ state }) => `${dollars(state.totals.costUsd)} in all`,
  },
  {
    name: 'memory',
    label: 'Memory',
    value: ({ state }) => state.now.residentBytes,
    text: bytes,
    more: ({ state }) => `${bytes(state.now.bufferedBytes)} of bodies`,
  },
  {
    name: 'loop-delay',
    label: 'Event-loop delay p99',
    value: ({ state }) => state.now.loopDelay.p99,
    text: duration,
    more: ({ state }) => `max ${duration(state.now.loopDelay.max)}`,
  },
  {
    name: 'ledger-waiting',
    label: 'Ledger waiting',
    value: ({ state }) => state.now.ledgerWaiting,
    text: count,
    more: () => 'entries to be written',
  },
];

/**
 * The current numbers. Rates are over the last ten seconds, or from the last point of the history while there is only one
 * state. Percentiles are from the last point.
 */
export function Tiles() {
  const session = useSession();
  const state = session.state.value;
  const now = state && { state, window: session.window.value, points: session.points.value };
  return (
    <div class="panel tiles">
      {tiles.map((tile) => {
        const number = now && tile.value(now);
        return (
          <div key={tile.name} class="stat" data-stat={tile.name} data-value={`${number ?? ''}`}>
            <span>{tile.label}</span>
            <span>{number === null ? nothing : tile.text(number)}</span>
            <span class="hint">{now === null ? nothing : tile.more(now)}</span>
          </div>
        );
      })}
    </div>
  );
}
