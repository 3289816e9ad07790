import type {
  HistoryView,
  LatencyView,
  LiveState,
  RecentRequestView,
  TargetView,
} from '../../src/metrics/live-state.js';

const noLatency: LatencyView = { p50: null, p95: null, p99: null };

/** A point of the history, of five seconds in which nothing happened but what is given. */
export function pointAt(at: number, given: Partial<HistoryView> = {}): HistoryView {
  return {
    at,
    seconds: 5,
    requestsPerSecond: 0,
    errorsPerSecond: 0,
    inputTokensPerSecond: 0,
    outputTokensPerSecond: 0,
    cost: 0,
    firstByte: noLatency,
    duration: noLatency,
    own: noLatency,
    openRequests: 0,
    openSockets: 0,
    ...given,
  };
}

/** A state with so many requests since the start. */
export function stateAt(at: number, requests: number, startedAt = 0): LiveState {
  return {
    at,
    gateway: {
      version: '0.1.0',
      node: 'v20',
      url: 'http://127.0.0.1:8080',
      demo: true,
      startedAt,
      notReady: null,
      workers: { wanted: 1, serving: 1, restarts: 0 },
      configGeneration: 1,
    },
    now: {
      openRequests: 0,
      openSockets: 0,
      upstreamConnections: { open: 0, busy: 0, waiting: 0 },
      bufferedBytes: 0,
      ledgerWaiting: 0,
      residentBytes: 0,
      loopDelay: { p50: 0, p99: 0, max: 0 },
    },
    totals: {
      requests,
      errors: 0,
      refusals: 0,
      tokens: { input: 0, output: 0, cached: 0, reasoning: 0 },
      costUsd: 0,
      bytesIn: 0,
      bytesOut: 0,
      limitRefusals: {},
      firstByte: noLatency,
      duration: noLatency,
      own: noLatency,
    },
    models: [],
    protocols: [],
    keys: [],
    targets: [],
    requests: [],
  };
}

/** A request that went well, but for what is given. */
export function requestWith(given: Partial<RecentRequestView>): RecentRequestView {
  return {
    id: 'request-1',
    at: 0,
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'chat',
    model: 'sim-text',
    key: 'sk-demo',
    target: 'local/sim-text',
    status: 200,
    outcome: 'complete',
    error: null,
    durationMs: 10,
    firstByteMs: 5,
    ownMs: 1,
    retries: 0,
    leftOut: [],
    lostInAnswer: [],
    inputTokens: 1,
    outputTokens: 1,
    ...given,
  };
}

/** A target that is well, but for what is given. */
export function targetWith(given: Partial<TargetView>): TargetView {
  return {
    name: 'local/sim-text',
    state: 'closed',
    workersInState: 1,
    inFlight: 0,
    attempts: 0,
    failures: {},
    retries: 0,
    lastFailure: null,
    ...given,
  };
}
