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

/** A row of the table: what an upstream does, and what the gateway does about it. */
export interface Fault {
  readonly name: string;
  readonly upstream: StartHostile;
  /** Kinds of calls that it applies to. Default: all. */
  readonly asked?: readonly CallKind[];
  /** What the client gets. */
  readonly told: Told;
  /** `within`: the client has received a part of its stream by then, and the error is its last event. */
  readonly when: 'before' | 'within';
  /** The call is sent to the next target, and the client does not notice. */
  readonly failsOver: boolean;
  /** The result under which an attempt is counted. */
  readonly counted: AttemptResult;
  /**
   * `opens`: after this many in a row the target is skipped, and probed after a while. `cools`: it is skipped after
   * one, for the time that it requests. `ignores`: it is used as before.
   */
  readonly breaker: 'opens' | 'cools' | 'ignores';
  /** Requests that reach the upstream with each attempt. */
  readonly seen: 0 | 1;
  /** Nothing was sent, so a model's only target may be retried. */
  readonly repeatable?: boolean;
  /** Time limits that it exceeds. Default: none. */
  readonly timeouts?: Readonly<Record<string, number>>;
}

/** The client's error for an upstream that did not return a valid response. */
export const broken: Told = { status: 502, code: 'upstream_error', type: 'api_error' };
/** The client's error for an upstream that took too long. */
export const late: Told = { status: 504, code: 'upstream_timeout', type: 'timeout_error' };
/** The client's error for a stream of another protocol. */
export const foreign: Told = { status: 502, code: 'unsupported_stream_event', type: 'api_error' };

/**
 * The upstream broke off before anything was relayed: the next target is tried, and the failure counts against this
 * one.
 */
export const brokenBefore = { told: broken, when: 'before', failsOver: true, breaker: 'opens' } as const;
/** A time limit passed before anything was relayed: the work may be continuing, so nothing is retried. */
export const lateBefore = { told: late, when: 'before', failsOver: false, breaker: 'opens' } as const;

/** A short time limit, which a healthy upstream in the same process meets nevertheless. */
export const shortMs = 3000;

const openMs = 1500;
const atOnce = 4;
const protocols = ['chat', 'messages'];
const ill = 'u0/m';
const well = 'u1/m';

/** Runs every row twice: with one target, and with another healthy one. */
export function playFaults(rows: readonly Fault[]): void {
  t.jobs = atOnce;
  for (const row of rows) {
    test(`${row.name}: the only target`, { buffered: true }, (t) => playAlone(t, row));
    test(`${row.name}: one of two targets`, { buffered: true }, (t) => playBeside(t, row));
  }
}

/** On a slow machine, an open breaker may already be waiting for its probe. */
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

/** Makes every kind of call of the row, and checks the target's breaker after the first and after the last. */
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
  // A call is sent to another target only within a second of its sending. This gives a busy machine one call at a
  // time.
  if (row.timeouts === undefined) for (const kind of others) await asking(kind);
  else await Promise.all(others.map(asking));
  const afterAll = figuresOf(gateway).stateOf(ill) ?? '';
  t.ok(statesAfterAll[row.breaker].includes(afterAll), `it is ${afterAll} after all`);
}

function checkFailure(t: Test, row: Fault): (kind: CallKind, answer: RawAnswer) => void {
  const check = row.when === 'within' ? checkBroken : checkTold;
  return (kind, answer) => check(t, kind, row.told, answer);
}

/** Checks the counters of failed calls. */
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
  // Whatever the state of its breaker: it is the only target.
  for (const kind of callKinds) checkGood(t, kind, await ask(gateway.port, kind));
}

async function playBeside(t: Test, row: Fault): Promise<void> {
  const other = await startRawUpstream(t, answerWell);
  const stage = await start(t, row, [other.url]);
  const { gateway, hostile, asked } = stage;
  const good = (kind: CallKind, answer: RawAnswer): void => checkGood(t, kind, answer);
  await askAll(t, row, stage, row.failsOver ? good : checkFailure(t, row));
  const figures = figuresOf(gateway);
  // A target that asks to be left alone gets one call.
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

/** While the breaker is open, no client notices the fault. After the recovery, the target gets calls again. */
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
