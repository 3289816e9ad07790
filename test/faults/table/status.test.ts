import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';
import { ask, checkGood } from './call-kinds.js';
import { type Fault, playFaults } from './fault.js';
import { figuresOf } from './figures.js';
import { answering, answerWell } from './hostile.js';

/** An error in the upstream's own words. */
const error = (status: number, lines = ''): string =>
  jsonAnswer(status, `{"error":{"message":"from the upstream","code":"own_${status}"}}`, lines);

/** What each status means for the call and for the target, and the type that a messages client reads. */
const meanings: readonly (readonly [
  status: number,
  type: string,
  failsOver: boolean,
  breaker: Fault['breaker'],
])[] = [
  [400, 'invalid_request_error', false, 'ignores'],
  [404, 'not_found_error', false, 'ignores'],
  [422, 'invalid_request_error', false, 'ignores'],
  [401, 'api_error', true, 'opens'],
  [402, 'api_error', true, 'opens'],
  [403, 'api_error', true, 'ignores'],
  [408, 'timeout_error', true, 'ignores'],
  [409, 'conflict_error', true, 'ignores'],
  [500, 'api_error', true, 'opens'],
  [501, 'api_error', false, 'ignores'],
  [502, 'api_error', true, 'opens'],
  [503, 'overloaded_error', true, 'opens'],
  [504, 'timeout_error', true, 'opens'],
  [520, 'api_error', true, 'opens'],
  [529, 'overloaded_error', true, 'opens'],
];

/** These concern the gateway's own key. A client learns only that the upstream cannot be used. */
const ownAccount: ReadonlySet<number> = new Set([401, 402, 403]);

/** Error answers: a client gets the last target's own. */
const rows: readonly Fault[] = [
  ...meanings.map(
    ([status, type, failsOver, breaker]): Fault => ({
      name: `status ${status}`,
      upstream: answering(error(status)),
      told: ownAccount.has(status)
        ? { status: 502, code: 'upstream_error', type }
        : { status, code: `own_${status}`, type },
      when: 'before',
      failsOver,
      counted: status < 500 ? 'status_4xx' : 'status_5xx',
      breaker,
      seen: 1,
    }),
  ),
  {
    name: 'status 429 with retry-after',
    upstream: answering(error(429, 'retry-after: 60\r\n')),
    told: { status: 429, code: 'own_429', type: 'rate_limit_error', retryAfter: '60' },
    when: 'before',
    failsOver: true,
    counted: 'status_429',
    breaker: 'cools',
    seen: 1,
  },
  {
    name: 'status 503 with retry-after',
    upstream: answering(error(503, 'retry-after: 60\r\n')),
    told: { status: 503, code: 'own_503', type: 'overloaded_error', retryAfter: '60' },
    when: 'before',
    failsOver: true,
    counted: 'status_5xx',
    breaker: 'cools',
    seen: 1,
  },
];

playFaults(rows);

test('status 429 without retry-after is no illness, however often it comes', async (t) => {
  const limited = await startRawUpstream(t, () => error(429));
  const other = await startRawUpstream(t, answerWell);
  const gateway = await startGateway(t, {
    upstreams: [limited.url, other.url],
    config: { routing: { failures: 1 } },
  });
  for (let i = 0; i < 5; i++) checkGood(t, 'chat', await ask(gateway.port, 'chat'));
  const figures = figuresOf(gateway);
  const attempts = figures.sum('gateway_upstream_attempts_total', { target: 'u0/m', result: 'status_429' });
  t.equal(attempts, limited.requests.length);
  t.equal(figures.sum('gateway_retries_total', { target: 'u1/m' }), attempts);
  t.ok(['cooling', 'closed'].includes(figures.stateOf('u0/m') ?? ''));
});
