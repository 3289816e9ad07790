import { counterFamilies } from '../metrics/families.js';
import type { Inspection } from '../metrics/inspection.js';
import { bucketsOf, eachSeries, latencyOf, sumOf } from '../metrics/readings.js';
import type { MetricsSnapshot } from '../metrics/snapshot.js';
import type { GatewayView, LiveState, MomentView, RecentRequestView } from './live-state.js';
import { targetViews } from './live-targets.js';
import {
  countsOf,
  keyViews,
  modelViews,
  protocolViews,
  type RequestCount,
  requestCounts,
  tokensOf,
} from './live-traffic.js';

/** Requests that are shown. */
const mostRequests = 100;

/** What the state is made of. */
export interface LiveParts {
  /** Unix milliseconds. */
  readonly at: number;
  readonly gateway: GatewayView;
  /** Of all workers. */
  readonly merged: MetricsSnapshot;
  /** Of those workers that answered. */
  readonly inspections: readonly Inspection[];
}

/** What somebody sees who looks at the gateway now. Its counts are those of `/metrics` at the same moment. */
export function liveState({ at, gateway, merged, inspections }: LiveParts): LiveState {
  const requests = requestCounts(merged);
  return {
    at,
    gateway,
    now: momentOf(merged),
    totals: totalsOf(merged, requests),
    models: modelViews(merged, requests),
    protocols: protocolViews(merged, requests),
    keys: keyViews(merged),
    targets: targetViews(merged, inspections),
    requests: newest(inspections.flatMap((inspection) => inspection.requests)),
  };
}

function totalsOf(
  { counters, histograms }: MetricsSnapshot,
  requests: readonly RequestCount[],
): LiveState['totals'] {
  const limitRefusals: [string, number][] = [];
  eachSeries(counters, 'gateway_limit_refusals_total', ([limit = ''], count) =>
    limitRefusals.push([limit, count]),
  );
  return {
    ...countsOf(requests),
    tokens: tokensOf(counters),
    costUsd: sumOf(counters, 'gateway_cost_usd_total') / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    bytesIn: sumOf(counters, 'gateway_request_bytes_total'),
    bytesOut: sumOf(counters, 'gateway_response_bytes_total'),
    limitRefusals: Object.fromEntries(limitRefusals),
    firstByte: latencyOf('gateway_first_byte_seconds', bucketsOf(histograms, 'gateway_first_byte_seconds')),
    duration: latencyOf(
      'gateway_request_duration_seconds',
      bucketsOf(histograms, 'gateway_request_duration_seconds'),
    ),
    own: latencyOf('gateway_own_seconds', bucketsOf(histograms, 'gateway_own_seconds')),
  };
}

function momentOf({ gauges }: MetricsSnapshot): MomentView {
  const loopDelay = { p50: 0, p99: 0, max: 0 };
  eachSeries(gauges, 'gateway_event_loop_delay_seconds', ([stat = ''], seconds) => {
    if (stat === 'p50' || stat === 'p99' || stat === 'max') loopDelay[stat] = seconds;
  });
  return {
    openRequests: sumOf(gauges, 'gateway_open_requests'),
    openSockets: sumOf(gauges, 'gateway_open_sockets'),
    upstreamConnections: {
      open: sumOf(gauges, 'gateway_upstream_connections_open'),
      busy: sumOf(gauges, 'gateway_upstream_connections_busy'),
      waiting: sumOf(gauges, 'gateway_upstream_requests_waiting'),
    },
    bufferedBytes: sumOf(gauges, 'gateway_buffered_bytes'),
    ledgerWaiting: sumOf(gauges, 'gateway_ledger_waiting_entries'),
    residentBytes: sumOf(gauges, 'gateway_resident_memory_bytes'),
    loopDelay,
  };
}

function newest(requests: RecentRequestView[]): RecentRequestView[] {
  return requests.sort((a, b) => b.at - a.at).slice(0, mostRequests);
}
