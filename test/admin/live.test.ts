import { test } from 'tap';
import { liveStateSteps } from '../../src/admin/live.js';
import type { InspectedTarget, Inspection } from '../../src/metrics/inspection.js';
import type { GatewayView, RecentRequestView } from '../../src/metrics/live-state.js';
import { createRecorder } from '../../src/metrics/recorder.js';
import { createTotals } from '../../src/metrics/totals.js';
import { atOnce } from '../../src/wire/steps.js';
import { gaugeReader, sent, target } from '../metrics/samples.js';
import { callRecord } from '../support/call-record.js';

const at = 1_700_000_000_000;
const liveStateOf = (parts: Parameters<typeof liveStateSteps>[0]) => atOnce(liveStateSteps(parts));

const gateway: GatewayView = {
  version: '1.2.3',
  node: 'v20',
  url: 'http://127.0.0.1:8080',
  demo: false,
  startedAt: at - 60_000,
  notReady: null,
  workers: { wanted: 2, serving: 2, restarts: 0 },
  configGeneration: 1,
};

const usage = { input: 30, output: 20, cached: 10, reasoning: 5 };

function request(id: string, endedAt: number): RecentRequestView {
  return {
    id,
    at: endedAt,
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'chat',
    model: 'm',
    key: 'team',
    target: null,
    status: 200,
    outcome: 'complete',
    error: null,
    durationMs: 1,
    firstByteMs: null,
    ownMs: null,
    retries: 0,
    leftOut: [],
    lostInAnswer: [],
    inputTokens: 0,
    outputTokens: 0,
  };
}

function inspected(name: string, given: Partial<InspectedTarget> = {}): InspectedTarget {
  return { name, state: 'closed', lastFailure: null, ...given };
}

const merge = (...recorders: readonly ReturnType<typeof createRecorder>[]) => {
  const totals = createTotals();
  for (const [worker, recorder] of recorders.entries()) totals.update(worker, sent(recorder.collect()));
  return totals.merged();
};

test('what two workers have counted is told once, by model, protocol and key', async (t) => {
  const workers = [
    createRecorder(gaugeReader({ gateway_open_requests: 2, gateway_ledger_waiting_entries: 4 })),
    createRecorder(
      gaugeReader(
        {
          gateway_open_requests: 1,
          gateway_open_sockets: 3,
          gateway_upstream_connections_open: 5,
          gateway_upstream_connections_idle: 1,
          gateway_upstream_connections_busy: 4,
          gateway_upstream_requests_waiting: 6,
          gateway_resident_memory_bytes: 7,
          gateway_heap_used_bytes: 1,
        },
        { loopDelay: { p50: 0.25, p99: 0.5, max: 1 } },
      ),
    ),
  ] as const;
  for (const worker of workers) {
    worker.record(callRecord({ model: 'a', usage, costNanoUsd: 1_500_000 }));
    worker.record(callRecord({ model: 'a', protocol: 'messages', usage, firstByteMs: 2000 }));
    worker.record(callRecord({ model: 'b', keyId: 'other', status: 503, outcome: 'refused' }));
    worker.record(callRecord({ model: 'b', outcome: 'upstream_error' }));
    worker.record(callRecord({ model: null, keyId: null, status: 401, outcome: 'refused', ownMs: -1 }));
    worker.count('gateway_limit_refusals_total', 1, 'requests');
  }
  workers[0].record(callRecord({ model: 'b', status: 429, outcome: 'refused', firstByteMs: -1 }));
  const state = liveStateOf({ at, gateway, merged: merge(...workers), inspections: [] });
  t.equal(state.at, at);
  t.equal(state.gateway, gateway);
  t.match(state.totals, {
    requests: 11,
    errors: 4,
    refusals: 3,
    tokens: { input: 120, output: 80, cached: 40, reasoning: 20 },
    costUsd: 0.003,
    bytesIn: 1100,
    bytesOut: 11_000,
    limitRefusals: { requests: 2 },
  });
  t.match(state.models, [
    { name: 'b', requests: 5, errors: 4, refusals: 1, costUsd: 0, tokens: { input: 0 } },
    { name: 'a', requests: 4, errors: 0, refusals: 0, costUsd: 0.003, tokens: { input: 120 } },
    { name: 'none', requests: 2, errors: 0, refusals: 2 },
  ]);
  const { firstByte } = state.models[1] ?? {};
  t.ok((firstByte?.p50 ?? 9) <= 0.25, 'of both protocols');
  t.ok((firstByte?.p99 ?? 0) > 1);
  t.match(state.protocols, [
    { name: 'chat', requests: 9, errors: 4, refusals: 3 },
    { name: 'messages', requests: 2, errors: 0, refusals: 0 },
  ]);
  t.ok((state.protocols[0]?.duration.p50 ?? 0) > 0.1);
  t.strictSame(state.keys, [
    { name: 'team-a', requests: 7, errors: 0, refusals: 1 },
    { name: 'none', requests: 2, errors: 0, refusals: 2 },
    { name: 'other', requests: 2, errors: 2, refusals: 0 },
  ]);
  t.match(state.now, {
    openRequests: 3,
    openSockets: 3,
    upstreamConnections: { open: 5, busy: 4, waiting: 6 },
    ledgerWaiting: 4,
    residentBytes: 7,
    loopDelay: { p50: 0.25, p99: 0.5, max: 1 },
  });
});

test('a gateway that has done nothing has a state', async (t) => {
  const { totals, now, ...lists } = liveStateOf({ at, gateway, merged: merge(), inspections: [] });
  t.match(totals, { requests: 0, costUsd: 0, tokens: { input: 0 }, own: { p50: null } });
  t.match(now, { openRequests: 0, loopDelay: { max: 0 } });
  for (const list of ['models', 'protocols', 'keys', 'targets', 'requests'] as const) t.same(lists[list], []);
});

test('a target is as its worst-off worker says, with the last failure of any', async (t) => {
  const recorder = createRecorder(
    gaugeReader({}, { targets: [{ upstream: 'up', model: 'a', state: 'closed', inFlight: 3, calls: 1 }] }),
  );
  for (let i = 0; i < 3; i++) recorder.recordAttempt(target('up', 'a'), 'ok');
  recorder.recordAttempt(target('up', 'a'), 'status_5xx');
  recorder.recordAttempt(target('up', 'a'), 'timeout');
  recorder.recordRetry(target('up', 'a'));
  recorder.recordAttempt(target('up', 'gone'), 'ok');
  const early = { at: at - 2000, message: 'reset' };
  const late = { at: at - 1000, message: 'status 503' };
  const inspections: Inspection[] = [
    {
      requests: [],
      limits: [],
      targets: [inspected('up/a', { state: 'open', lastFailure: early }), inspected('up/b')],
    },
    {
      requests: [],
      limits: [],
      targets: [inspected('up/a', { state: 'open', lastFailure: late }), inspected('up/b')],
    },
    { requests: [], limits: [], targets: [inspected('up/a', { state: 'half-open' }), inspected('up/b')] },
  ];
  const { targets } = liveStateOf({ at, gateway, merged: merge(recorder), inspections });
  const nothing = { inFlight: 0, attempts: 0, failures: {}, retries: 0, lastFailure: null };
  t.strictSame(targets, [
    {
      name: 'up/a',
      state: 'open',
      workersInState: 2,
      inFlight: 3,
      attempts: 5,
      failures: { status_5xx: 1, timeout: 1 },
      retries: 1,
      lastFailure: late,
    },
    { ...nothing, name: 'up/gone', state: 'closed', workersInState: 0, attempts: 1 },
    { ...nothing, name: 'up/b', state: 'closed', workersInState: 3 },
  ]);
});

test('the busiest are told, and the newest requests of all workers', async (t) => {
  const recorder = createRecorder(gaugeReader());
  for (let i = 0; i < 300; i++) {
    for (let times = i === 250 ? 3 : 1; times > 0; times--)
      recorder.record(callRecord({ model: `m${String(i).padStart(3, '0')}`, keyId: `k${i}` }));
  }
  const ofWorker = (start: number): Inspection => ({
    requests: Array.from({ length: 100 }, (_, age) => request(`${start}-${age}`, at - start - 2 * age)),
    limits: [],
    targets: Array.from({ length: 300 }, (_, i) => inspected(`up/${i}`)),
  });
  const state = liveStateOf({
    at,
    gateway,
    merged: merge(recorder),
    inspections: [ofWorker(1), ofWorker(0)],
  });
  t.equal(state.totals.requests, 302);
  t.same([state.models.length, state.keys.length, state.targets.length], [200, 200, 200]);
  t.match(state.models.slice(0, 2), [{ name: 'm250', requests: 3 }, { name: 'm000' }]);
  t.equal(state.requests.length, 100);
  t.same(
    state.requests.slice(0, 4).map(({ id }) => id),
    ['0-0', '1-0', '0-1', '1-1'],
  );
});
