import t, { type Test, test } from 'tap';
import type { AttemptResult } from '../../../src/metrics/results.js';
import { settled } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { type Arrival, openClient, startRealtimeUpstream } from '../../support/realtime.js';
import { figuresOf } from './figures.js';

t.jobs = 8;

/** How an upstream ends a realtime session, and what the gateway does about it. */
interface SessionEnd {
  readonly name: string;
  readonly end: (arrival: Arrival) => void;
  /** A response is in progress. Default: both cases. */
  readonly within?: boolean;
  /** What the client gets. */
  readonly code: number;
  /** Code of the preceding `error` event. */
  readonly told?: string;
  readonly outcome: string;
  /** In the log; null for none. */
  readonly error: string | null;
  readonly cause: string | RegExp | null;
  readonly counted: AttemptResult;
  readonly breaker: 'opens' | 'ignores';
  readonly sockets?: Readonly<Record<string, number>>;
}

const mebibyte = 1024 * 1024;
const created = JSON.stringify({ type: 'response.created', response: { status: 'in_progress' } });
const complete = {
  outcome: 'complete',
  error: null,
  cause: null,
  counted: 'ok',
  breaker: 'ignores',
} as const;
const failed = { outcome: 'upstream_error', error: 'upstream_error' } as const;
const cut = { ...failed, counted: 'truncated', breaker: 'opens' } as const;

/** Ends with a close frame. */
const closing =
  (code: number, reason = '') =>
  ({ socket }: Arrival): void =>
    socket.close(code, reason);
/** Sends something that is not a message. */
const writing =
  (bytes: string) =>
  ({ request }: Arrival): void => {
    request.socket.write(bytes, 'latin1');
  };

const rows: readonly SessionEnd[] = [
  { name: 'closes with 1000', end: closing(1000, 'done'), code: 1000, ...complete },
  { name: 'closes without a code', end: ({ socket }) => socket.close(), code: 1005, ...complete },
  { name: 'goes away between responses', end: closing(1001), within: false, code: 1001, ...complete },
  { name: 'goes away', end: closing(1001), within: true, code: 1001, cause: 'close 1001', ...cut },
  ...[1002, 1011, 1012, 1013, 1014].map((code) => ({
    name: `closes with ${code}`,
    end: closing(code, 'some fault'),
    ...{ code, cause: `close ${code}: some fault`, ...cut },
  })),
  ...[1003, 1007, 1008, 1009, 3008, 4000].map((code) => ({
    name: `closes with ${code}`,
    end: closing(code, 'not this'),
    ...({ code, cause: `close ${code}: not this`, ...failed, counted: 'ok', breaker: 'ignores' } as const),
  })),
  {
    name: 'names its account in a close frame',
    end: closing(1011, 'no capacity for org-abcdef123456'),
    code: 1011,
    told: 'upstream_error',
    cause: 'close 1011: no capacity for [secret]',
    ...cut,
  },
  {
    name: 'does not accept our account',
    end: closing(1011, 'Incorrect API key provided'),
    code: 1011,
    told: 'upstream_error',
    ...failed,
    cause: 'status 401',
    counted: 'status_4xx',
    breaker: 'opens',
  },
  {
    name: 'ends the connection',
    end: ({ request }) => request.socket.end(),
    code: 1011,
    told: 'upstream_error',
    ...cut,
    cause: 'reset: closed without a close frame',
    counted: 'reset',
  },
  {
    name: 'resets the connection',
    end: ({ request }) => request.socket.resetAndDestroy(),
    code: 1011,
    told: 'upstream_error',
    ...cut,
    cause: 'reset: ECONNRESET',
    counted: 'reset',
  },
  {
    name: 'answers no ping',
    end: ({ socket }) => socket.pause(),
    sockets: { pingMs: 500 },
    code: 1011,
    told: 'upstream_timeout',
    ...cut,
    error: 'upstream_timeout',
    cause: 'idle_timeout: no answer to a ping',
    counted: 'timeout',
  },
  {
    name: 'sends a frame that is none',
    end: writing('\x83\x00'),
    code: 1002,
    ...cut,
    cause: 'malformed_answer: a frame against RFC 6455',
    counted: 'malformed',
  },
  {
    name: 'sends a message that is too large',
    end: ({ socket }) => socket.send(Buffer.alloc(mebibyte + 1)),
    sockets: { messageBytes: mebibyte },
    code: 1009,
    ...failed,
    cause: 'answer_too_large: a message that is too large',
    counted: 'too_large',
    breaker: 'ignores',
  },
  {
    name: 'sends a message that finds no room',
    end: ({ socket }) => socket.send(Buffer.alloc(mebibyte), { fin: false }),
    sockets: { messageBytes: mebibyte, heldBytes: 64 * mebibyte, heldBytesPerKey: mebibyte },
    code: 1013,
    told: 'overloaded',
    outcome: 'refused',
    error: 'overloaded',
    cause: 'no_room: a message found no room',
    counted: 'too_large',
    breaker: 'ignores',
  },
];

async function start(t: Test, { sockets = {} }: Pick<SessionEnd, 'sockets'>, isWithin: boolean) {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { routing: { failures: 1, openMs: 60_000 }, sockets },
  });
  const client = await openClient(t, gateway.port);
  const arrival = await upstream.arrival(0);
  if (isWithin) {
    arrival.socket.send(created);
    await client.until(1);
  }
  /** Checks the record of the session. */
  const check = async (expected: Pick<SessionEnd, 'outcome' | 'error' | 'cause' | 'counted' | 'breaker'>) => {
    const { outcome, error = null, cause = null } = await gateway.line(({ msg }) => msg === 'request');
    t.strictSame({ outcome, error }, { outcome: expected.outcome, error: expected.error });
    t.equal(cause, expected.cause);
    const figures = figuresOf(gateway);
    const counted = { target: 'u0/m', result: expected.counted };
    t.equal(
      figures.sum('gateway_upstream_attempts_total', counted),
      1,
      `it is counted as ${expected.counted}`,
    );
    t.equal(figures.sum('gateway_upstream_attempts_total'), 1);
    t.equal(figures.stateOf('u0/m'), expected.breaker === 'opens' ? 'open' : 'closed');
  };
  return { client, arrival, check };
}

for (const row of rows) {
  const { name, end, within, code, told } = row;
  for (const isWithin of within === undefined ? [false, true] : [within])
    test(`an upstream ${name}, ${isWithin ? 'within' : 'outside of'} a response`, {
      buffered: true,
    }, async (t) => {
      const { client, arrival, check } = await start(t, row, isWithin);
      end(arrival);
      t.equal((await client.closed).code, code);
      const events = client.received.slice(isWithin ? 1 : 0).map((event) => JSON.parse(String(event)));
      t.match(events, told === undefined ? [] : [{ type: 'error', error: { code: told } }]);
      t.equal(events.length, told === undefined ? 0 : 1);
      await check(row);
    });
  if (within === false) continue;
  test(`an upstream ${name} while it is read on for a client that has left`, {
    buffered: true,
  }, async (t) => {
    const { client, arrival, check } = await start(t, row, true);
    const cancelled = new Promise((resolve) => arrival.socket.once('message', resolve));
    client.socket.terminate();
    await cancelled;
    end(arrival);
    await check({ ...row, outcome: 'client_gone', error: null, cause: null });
  });
}

const total = 32;
for (const [what, end, cause] of [
  ['closes with 1011', closing(1011, 'keepalive ping timeout'), 'close 1011: keepalive ping timeout'],
  [
    'ends the connection',
    ({ request }: Arrival) => request.socket.end(),
    'reset: closed without a close frame',
  ],
] as const)
  test(`an upstream ${what} whose pings were not read since its client did not read`, {
    buffered: true,
  }, async (t) => {
    const { client, arrival, check } = await start(t, { sockets: {} }, false);
    client.socket.pause();
    for (let index = 0; index < total; index++) arrival.socket.send(Buffer.alloc(mebibyte));
    await settled(() => arrival.socket.bufferedAmount, { looks: 300, everyMs: 1 });
    end(arrival);
    client.socket.resume();
    await client.closed;
    await check({ ...failed, cause, counted: 'ok', breaker: 'ignores' });
  });
