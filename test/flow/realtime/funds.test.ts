import { test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import type { Model } from '../../../src/config/types.js';
import { SessionFunds } from '../../../src/flow/realtime/funds.js';
import { Admission, type Decision, type Denial } from '../../../src/limits/admission.js';
import type { Demand, Pool } from '../../../src/limits/pool.js';

/** A token of output costs one. */
const model = { price: resolvePrice({ output: 0.001 }) } as unknown as Model;
const pool: Pool = { name: 'key:a:budget', kind: 'budget', limit: 1_000_000 };
const unknown: Denial = { outcome: 'denied', pool, reason: 'unknown', retryAfterMs: 0 };

/** A session whose reservations are decided as the test says: with nothing said they are admitted. */
function start(decisions: Denial[]) {
  const settled: number[] = [];
  const admission = (demands: readonly Demand[]): Admission => {
    const amount = demands[0]?.amount ?? 0;
    const holder = {
      putRight: (_pool: Pool, _bucket: number, spare: number) => settled.push(amount - spare),
      spend: () => {},
      release: () => {},
    };
    return new Admission(holder, demands, 0);
  };
  const acquire = (demands: readonly Demand[]): Decision =>
    demands.every(({ amount }) => amount === 0)
      ? admission(demands)
      : (decisions.shift() ?? admission(demands));
  const call = {
    key: null,
    model,
    target: null,
    usage: { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 },
    isServed: true,
    mediaSeconds: 0,
    characters: 0,
    secondsBesideTokens: 0,
    units: 0,
    made: null,
    otherModels: null,
    costNanos: -1,
    lostInAnswer: [],
    onFault: (_where: unknown, fault: unknown) => {
      throw fault;
    },
  };
  const funds = new SessionFunds(
    { limits: { acquire } },
    call,
    [pool],
    admission([{ pool, amount: 0 }]),
    () => {},
  );
  const respond = (output: number): void => {
    call.usage = { ...call.usage, output: call.usage.output + output };
    funds.pay();
  };
  return { funds, respond, settled, decisions };
}

test('a session goes on to pay once it can be told again what is left', async (t) => {
  const { respond, settled, funds } = start([unknown]);
  respond(10);
  t.strictSame(settled, [10]);
  respond(20);
  respond(30);
  t.strictSame(settled, [10, 20, 30]);
  funds.end();
  t.strictSame(settled, [10, 20, 30, 0], 'what was reserved goes back');
});

test('what a session has used while nobody could tell is paid when it ends', async (t) => {
  const { respond, settled, funds } = start([unknown, unknown]);
  respond(10);
  respond(20);
  t.strictSame(settled, [10]);
  funds.end();
  t.strictSame(settled, [10, 20]);
});

test('a session ends when a budget has too little left, though it could not be told before', async (t) => {
  const { respond, funds, decisions } = start([unknown]);
  respond(10);
  t.notOk(funds.isSpent);
  decisions.push({ ...unknown, reason: 'exhausted' });
  respond(20);
  t.ok(funds.isSpent);
});

test('what a session has used after its budget was empty is taken from it when the session ends', async (t) => {
  const exhausted: Denial = { ...unknown, reason: 'exhausted' };
  const { respond, settled, funds } = start([exhausted, exhausted]);
  respond(10);
  t.ok(funds.isSpent);
  respond(20);
  t.strictSame(settled, [10]);
  funds.end();
  t.strictSame(settled, [10, 20]);
});
