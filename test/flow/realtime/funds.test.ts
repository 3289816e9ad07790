import { test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import type { Model } from '../../../src/config/types.js';
import { SessionFunds } from '../../../src/flow/realtime/funds.js';
import { Admission, type Decision, type Denial } from '../../../src/limits/admission.js';
import type { Demand, Pool } from '../../../src/limits/pool.js';
import { WaitingCall } from '../../../src/limits/waiting-line.js';

/** A token of output costs one. */
const model = { price: resolvePrice({ output: 0.001 }) } as unknown as Model;
const pool: Pool = { name: 'key:a:budget', kind: 'budget', limit: 1_000_000 };
const unknown: Denial = { outcome: 'denied', pool, reason: 'unknown', retryAfterMs: 0 };

/** A session whose reservations are decided as the test says: with nothing said they are admitted. */
function start(decisions: (Denial | 'later')[]) {
  const settled: number[] = [];
  const told: (boolean | 'spent')[] = [];
  let decide: ((decision: Decision) => void) | null = null;
  const admission = (demands: readonly Demand[]): Admission => {
    const amount = demands[0]?.amount ?? 0;
    const holder = {
      putRight: (_pool: Pool, _bucket: number, spare: number) => settled.push(amount - spare),
      spend: () => {},
      release: () => {},
    };
    return new Admission(holder, demands, 0);
  };
  const acquire = (
    demands: readonly Demand[],
    onDecided: (decision: Decision) => void,
  ): Decision | WaitingCall => {
    const said = demands.every(({ amount }) => amount === 0) ? null : decisions.shift();
    if (said !== 'later') return said ?? admission(demands);
    decide = onDecided;
    const sequence = 0;
    return new WaitingCall({ sequence, deadline: 0, demands, onDecided, onCancel: () => {} });
  };
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
  const funds = new SessionFunds({ limits: { acquire } }, call, [pool], admission([{ pool, amount: 0 }]), {
    onSpent: () => told.push('spent'),
    onReserved: (isPaid) => told.push(isPaid),
  });
  const respond = (output: number, inFlight = 0): void => {
    call.usage = { ...call.usage, output: call.usage.output + output };
    funds.pay(inFlight);
    funds.release(inFlight);
  };
  return {
    funds,
    respond,
    settled,
    told,
    decisions,
    admission,
    decide: (decision: Decision) => decide?.(decision),
  };
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

test('a response that is asked for while its reservation is acquired waits for that', (t) => {
  const { funds, respond, told, decisions, decide, admission } = start(['later', 'later', 'later']);
  respond(10);
  t.equal(funds.reserve(0), null);
  decide(unknown);
  t.strictSame(told, [true]);
  respond(20);
  t.equal(funds.reserve(0), null);
  respond(30);
  decide(admission([{ pool, amount: 20 }]));
  t.strictSame(told, [true], 'what was used meanwhile is paid before');
  decide({ ...unknown, reason: 'exhausted' });
  t.strictSame(told, [true, 'spent']);
  t.strictSame(decisions, []);
  const spent = start(['later', { ...unknown, reason: 'exhausted' }]);
  spent.respond(10);
  t.equal(spent.funds.reserve(0), null);
  spent.respond(20);
  spent.decide(admission([{ pool, amount: 10 }]));
  t.strictSame(spent.told, ['spent'], 'not paid by a budget that is known to be spent');
  t.end();
});

test('responses beside others have a reservation each, which goes back when they have ended', (t) => {
  const exhausted: Denial = { ...unknown, reason: 'exhausted' };
  const { funds, respond, settled, told, decisions, decide } = start([]);
  respond(10);
  t.equal(funds.reserve(0), true, 'the first has that of the session');
  t.equal(funds.reserve(1), true);
  decisions.push(exhausted);
  t.equal(funds.reserve(2), false);
  t.equal(funds.reserve(1), true, 'one that has one needs no other');
  decisions.push(unknown, 'later', 'later');
  t.equal(funds.reserve(2), true, 'an unknown outcome ends nothing');
  t.equal(funds.reserve(2), null);
  decide(exhausted);
  t.equal(funds.reserve(2), null);
  decide(unknown);
  t.strictSame(told, [false, true]);
  t.strictSame(settled, [10]);
  funds.release(1);
  t.strictSame(settled, [10, 0]);
  t.equal(funds.reserve(1), true);
  funds.end();
  t.strictSame(settled, [10, 0, 0, 0], 'all go back at the end');
  t.end();
});

test('the reservation of a response beside another is kept for it when the other one has ended', (t) => {
  const exhausted: Denial = { ...unknown, reason: 'exhausted' };
  const { funds, respond, settled, decisions } = start([]);
  respond(10);
  t.equal(funds.reserve(0), true);
  t.equal(funds.reserve(1), true);
  // All that is left is taken by others from here on.
  decisions.push(exhausted);
  respond(20, 1);
  t.strictSame(settled, [10, 20], 'nothing is given back');
  t.notOk(funds.isSpent);
  t.equal(decisions.length, 1, 'and nothing more is asked for');
  respond(30);
  t.strictSame(settled, [10, 20, 30]);
  t.ok(funds.isSpent);
  t.end();
});

test('a reservation that is acquired late takes none from a response that was asked for meanwhile', (t) => {
  const { funds, respond, settled, decisions, decide, admission } = start(['later']);
  respond(10);
  respond(20);
  t.equal(funds.reserve(0), null);
  t.equal(funds.reserve(1), true, 'with a reservation of its own');
  decisions.push({ ...unknown, reason: 'exhausted' });
  decide(admission([{ pool, amount: 10 }]));
  t.strictSame(settled, [10, 20]);
  t.ok(funds.isSpent, 'one more is asked for, for the other response');
  t.end();
});
