import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test, test } from 'tap';
import type { AttemptResult } from '../../../src/metrics/results.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import type { RawAnswer } from '../../support/raw-client.js';
import { startRawUpstream } from '../../support/upstream.js';
import {
  ask,
  type CallKind,
  callKinds,
  checkBroken,
  checkGood,
  checkTold,
  protocolOf,
  type Told,
} from './call-kinds.js';
import { type Figures, figuresOf } from './figures.js';
import { answerWell, type Hostile, type StartHostile } from './hostile.js';

/** A row of the table: what an upstream does, and what the gateway makes of it. */
export interface Fault {
  readonly name: string;
  readonly upstream: StartHostile;
  /** How clients ask that meet it; in every kind unless given. */
  readonly asked?: readonly CallKind[];
  /** What the client hears of it. */
  readonly told: Told;
  /** `within`: the client has got a part of its stream by then, and the error is its last event. */
  readonly when: 'before' | 'within';
  /** The call goes to the next target, and the client does not notice. */
  readonly failsOver: boolean;
  /** As what an attempt is counted. */
  readonly counted: AttemptResult;
  /**
   * `opens`: after so many in a row the target is left alone, and tried again after a while. `cools`: it is left alone
   * after one, for as long as it asks. `ignores`: it is asked as before.
   */
  readonly breaker: 'opens' | 'cools' | 'ignores';
  /** How many requests reach the upstream with each attempt. */
  readonly seen: 0 | 1;
  /** Nothing was sent, so the only target of a model may be asked again. */
  readonly repeatable?: boolean;
  /** Deadlines that it runs into; none comes near unless given. */
  readonly timeouts?: Readonly<Record<string, number>>;
}

/** How a caller hears of an upstream that did not return a valid response. */
export const broken: Told = { status: 502, code: 'upstream_error', type: 'api_error' };
/** How a caller hears of an upstream that took too long. */
export const late: Told = { status: 504, code: 'upstream_timeout', type: 'timeout_error' };
/** How a caller hears of a stream that is none of its protocol. */
export const foreign: Told = { status: 502, code: 'unsupported_stream_event', type: 'api_error' };

/** The upstream broke off before anything was relayed: the next target is asked, and it counts against this one. */
export const brokenBefore = { told: broken, when: 'before', failsOver: true, breaker: 'opens' } as const;
/** A deadline passed before anything was relayed: the work may still be going on, so nothing is asked again. */
export const lateBefore = { told: late, when: 'before', failsOver: false, breaker: 'opens' } as const;

/** A short deadline, that a healthy upstream in the same process keeps all the same. */
export const shortMs = 3000;

const openMs = 1500;
const atOnce = 4;
const protocols = ['chat', 'messages'];
const ill = 'u0/m';
const well = 'u1/m';

/** Plays every row twice: with one target, and with another one beside it that is well. */
export function playFaults(rows: readonly Fault[]): void {
  t.jobs = atOnce;
  for (const row of rows) {
    test(`${row.name}: the only target`, { buffered: true }, (t) => playAlone(t, row));
    test(`${row.name}: one of two targets`, { buffered: true }, (t) => playBeside(t, row));
  }
}

/** On a slow machine an open breaker may wait for its probe by the time it is looked at. */
const statesAfterAll: Readonly<Record<Fault['breaker'], readonly string[]>> = {
  opens: ['open', 'half-open'],
  cools: ['cooling', 'open'],
  ignores: ['closed'],
};

interface Stage {
  readonly gateway: RunningGateway;
  readonly hostile: Hostile;
  readonly asked: readonly CallKind[];
}

async function start(t: Test, row: Fault, urls: readonly string[]): Promise<Stage> {
  const hostile = await row.upstream(t);
  const asked = row.asked ?? callKinds;
  const names = ['u0', 'u1'].slice(0, 1 + urls.length);
  const gateway = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        u0: { kind: 'chat', baseUrl: hostile.url, apiKeys: ['k'], ...hostile.settings },
        ...(urls[0] === undefined ? {} : { u1: { kind: 'chat', baseUrl: urls[0], apiKeys: ['k'] } }),
      },
      models: { m: { protocols, targets: names.map((upstream, priority) => ({ upstream, priority })) } },
      routing: { failures: asked.length, openMs, maxOpenMs: openMs },
      timeouts: { connectMs: 30_000, firstByteMs: 30_000, idleMs: 30_000, ...row.timeouts },
    },
  });
  return { gateway, hostile, asked };
}

/** Asks in every kind of the row, and checks what the target's breaker says after the first and after the last. */
async function askAll(
  t: Test,
  row: Fault,
  { gateway, asked }: Stage,
  check: (kind: CallKind, answer: RawAnswer) => void,
): Promise<void> {
  const [first, ...others] = asked as [CallKind, ...CallKind[]];
  check(first, await ask(gateway.port, first));
  const afterOne = figuresOf(gateway).stateOf(ill);
  t.equal(afterOne, row.breaker === 'cools' ? 'cooling' : 'closed', 'the breaker after one');
  const asking = async (kind: CallKind): Promise<void> => check(kind, await ask(gateway.port, kind));
  // A call goes to another target within a second of its sending: here a busy machine is given one at a time.
  if (row.timeouts === undefined) for (const kind of others) await asking(kind);
  else await Promise.all(others.map(asking));
  const afterAll = figuresOf(gateway).stateOf(ill) ?? '';
  t.ok(statesAfterAll[row.breaker].includes(afterAll), `it is ${afterAll} after all`);
}

function checkFailure(t: Test, row: Fault): (kind: CallKind, answer: RawAnswer) => void {
  const check = row.when === 'within' ? checkBroken : checkTold;
  return (kind, answer) => check(t, kind, row.told, answer);
}

/** Checks what is counted of calls that failed. */
function checkFailed(t: Test, row: Fault, figures: Figures, asked: readonly CallKind[]): void {
  const status = `${row.when === 'within' ? 200 : row.told.status}`;
  for (const kind of asked) {
    const protocol = protocolOf(kind);
    const calls = asked.filter((other) => protocolOf(other) === protocol).length;
    const labels = { protocol, model: 'm', status, outcome: 'upstream_error' };
    t.equal(figures.sum('gateway_requests_total', labels), calls, `${kind} is counted`);
  }
}

async function playAlone(t: Test, row: Fault): Promise<void> {
  const stage = await start(t, row, []);
  const { gateway, hostile, asked } = stage;
  await askAll(t, row, stage, checkFailure(t, row));
  const figures = figuresOf(gateway);
  t.equal(hostile.seen(), row.seen * asked.length, 'requests that reached it');
  const retries = figures.sum('gateway_retries_total');
  if (row.repeatable !== true) t.equal(retries, 0);
  const attempts = asked.length + retries;
  const counted = { target: ill, result: row.counted };
  t.equal(figures.sum('gateway_upstream_attempts_total', counted), attempts, 'attempts as they ended');
  t.equal(figures.sum('gateway_upstream_attempts_total'), attempts, 'attempts');
  checkFailed(t, row, figures, asked);
  if (hostile.cure === null) return;
  await hostile.cure();
  // Whatever its breaker says: it is the only one.
  for (const kind of callKinds) checkGood(t, kind, await ask(gateway.port, kind));
}

async function playBeside(t: Test, row: Fault): Promise<void> {
  const other = await startRawUpstream(t, answerWell);
  const stage = await start(t, row, [other.url]);
  const { gateway, hostile, asked } = stage;
  const good = (kind: CallKind, answer: RawAnswer): void => checkGood(t, kind, answer);
  await askAll(t, row, stage, row.failsOver ? good : checkFailure(t, row));
  const figures = figuresOf(gateway);
  // One that asks to be left alone is asked once.
  const attempts = row.breaker === 'cools' ? 1 : asked.length;
  t.equal(hostile.seen(), row.seen * attempts, 'requests that reached it');
  const counted = { target: ill, result: row.counted };
  t.equal(figures.sum('gateway_upstream_attempts_total', counted), attempts, 'attempts as they ended');
  t.equal(figures.sum('gateway_upstream_attempts_total', { target: ill }), attempts, 'attempts at it');
  t.equal(figures.sum('gateway_retries_total', { target: well }), row.failsOver ? attempts : 0, 'retries');
  if (row.failsOver) {
    t.equal(other.requests.length, asked.length, 'the other one answers all');
    t.equal(figures.sum('gateway_requests_total', { status: '200', outcome: 'complete' }), asked.length);
  } else {
    t.equal(other.requests.length, 0, 'the other one is not asked');
    checkFailed(t, row, figures, asked);
  }
  if (row.breaker === 'opens') await checkRecovery(t, stage);
}

/** While its breaker is open no client notices that it is ill; once it is well it gets calls again. */
async function checkRecovery(t: Test, { gateway, hostile }: Stage): Promise<void> {
  if (hostile.cure === null) return;
  await hostile.cure();
  const before = hostile.seen();
  for (let turn = 0; hostile.seen() === before; turn++) {
    const kind = callKinds[turn % callKinds.length] as CallKind;
    checkGood(t, kind, await ask(gateway.port, kind));
    await pause(50);
  }
  t.equal(figuresOf(gateway).stateOf(ill), 'closed');
  for (const kind of callKinds) checkGood(t, kind, await ask(gateway.port, kind));
  t.equal(hostile.seen(), before + 1 + callKinds.length, 'it takes all calls again');
}
