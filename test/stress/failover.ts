import { setTimeout as pause } from 'node:timers/promises';
import { resendableMs } from '../../src/upstream/types.js';
import { parseText } from '../metrics/parse-text.js';
import { freePort } from '../support/free-port.js';
import { describeFailures } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { clock, type LoadUpstream, type Mood, startLoadUpstream } from '../support/load/upstream.js';
import { quantile } from '../support/process-memory.js';
import { type OpenLoadFailure, startOpenLoad } from './open-load.js';
import { held, type Line, ms, told } from './report.js';
import type { Scenario } from './scenario.js';
import { onStage, type Stage, stageConfig } from './stage.js';

/** The fault of one of two targets: SIGKILL and a restart, errors with status 500, or no answers. */
type Illness = 'killed' | Exclude<Mood, 'well'>;

interface FailoverPlan {
  readonly illness: Illness;
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** From the start, like the next one; later on a slow machine, once the gateway has had time to notice. */
  readonly illAtSeconds: number;
  readonly wellAtSeconds: number;
  /** The share of both targets is counted over this many seconds at the end. */
  readonly lastSeconds: number;
  /** Time limits for a connection, and for the first byte of an answer, which detects silence. */
  readonly deadlineMs: number;
}

interface FailoverFigures {
  readonly due: number;
  readonly answers: number;
  readonly failures: readonly OpenLoadFailure[];
  /** Shares of the faulty target: before the fault, during it, and in the last seconds. */
  readonly shares: { readonly before: number; readonly during: number; readonly last: number };
  /** From its recovery to its first call. */
  readonly backMs: number;
  readonly latenciesMs: readonly number[];
  /** Counters of the gateway for calls and attempts. */
  readonly counted: {
    readonly good: number;
    readonly failed: number;
    readonly retries: number;
    /** Attempts at any target that a time limit has ended. */
    readonly timeouts: number;
  };
  /** Attempts at the faulty target, by their results. */
  readonly attempts: Readonly<Record<string, number>>;
}

/** What the gateway reports, and what its clients and upstreams have seen. */
type Counted = Pick<FailoverFigures, 'counted' | 'attempts'>;
type Seen = Omit<FailoverFigures, keyof Counted>;

const token = 'the-token-of-the-operators';
const answerMs = 10;
/** A target without a call within this time is given up. */
const patienceMs = 15_000;
/** Of this many calls that the other target has answered, some have been sent to the faulty one first. */
const noticedCalls = 50;

/** Two targets of the same priority; the load is the same whatever happens to them. */
function configOf({ deadlineMs }: FailoverPlan, wellUrl: string, illUrl: string, adminPort: number) {
  const config = stageConfig(wellUrl);
  const upstream = { ...config.upstreams.load, apiKeys: ['upstream-key'] };
  return {
    admin: { port: adminPort, token },
    upstreams: { well: upstream, ill: { ...upstream, baseUrl: illUrl } },
    models: { m: { protocols: ['chat'], targets: [{ upstream: 'well' }, { upstream: 'ill' }] } },
    // A probe at least every few seconds, so that traffic has time to return.
    routing: { openMs: 500, maxOpenMs: 1000 },
    timeouts: { connectMs: deadlineMs, firstByteMs: deadlineMs },
  };
}

/** One of two targets fails under a constant rate of calls, and recovers after a while. */
export async function failover(plan: FailoverPlan): Promise<FailoverFigures> {
  const ill = await startLoadUpstream();
  const patient = { now: ill };
  const adminPort = await freePort();
  try {
    const config = (url: string) => configOf(plan, url, ill.url, adminPort);
    return await onStage({ config }, async (stage) => ({
      ...(await play(plan, stage, patient)),
      ...(await countedAt(adminPort)),
    }));
  } finally {
    patient.now.stop();
  }
}

async function play(plan: FailoverPlan, stage: Stage, patient: { now: LoadUpstream }): Promise<Seen> {
  const { gateway, upstream: well } = stage;
  const request = loadRequest({ does: 'complete', afterMs: answerMs });
  const { requestsPerSecond } = plan;
  const startedAt = clock();
  const at = (seconds: number): Promise<void> => pause(Math.max(0, startedAt + seconds * 1000 - clock()));
  const load = startOpenLoad({ port: gateway.port, requestsPerSecond, request, mostConnections: 2000 });
  const count = async (): Promise<Counts> => ({
    well: (await well.state()).requests,
    ill: (await patient.now.state()).requests,
  });

  await at(plan.illAtSeconds);
  const before = await count();
  if (plan.illness === 'killed') patient.now.stop();
  else patient.now.become(plan.illness);

  await at(plan.wellAtSeconds);
  await well.stateWhen(({ requests }) => requests >= before.well + noticedCalls, patienceMs);
  let since: Counts = { well: 0, ill: 0 };
  let during: Counts;
  if (plan.illness === 'killed') {
    during = { well: (await well.state()).requests - before.well, ill: 0 };
    patient.now = await startLoadUpstream(patient.now.port);
  } else {
    since = await count();
    during = difference(since, before);
    patient.now.become('well');
  }
  const wellAgainAt = clock();
  await patient.now.stateWhen(({ requests }) => requests > since.ill, patienceMs);
  const backMs = clock() - wellAgainAt;

  await at(plan.seconds - plan.lastSeconds);
  const lately = await count();
  await pause(plan.lastSeconds * 1000);
  const last = difference(await count(), lately);
  await load.stop();
  return {
    due: load.due,
    answers: load.answers,
    failures: load.failures,
    shares: { before: shareOf(before), during: shareOf(during), last: shareOf(last) },
    backMs,
    latenciesMs: load.latenciesMs,
  };
}

/** Calls that have reached each target. */
interface Counts {
  readonly well: number;
  readonly ill: number;
}

function difference(after: Counts, before: Counts): Counts {
  return { well: after.well - before.well, ill: after.ill - before.ill };
}

function shareOf({ well, ill }: Counts): number {
  return ill / Math.max(1, well + ill);
}

async function countedAt(adminPort: number): Promise<Counted> {
  const answer = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const families = parseText(await answer.text());
  const samples = (family: string) => families.get(family)?.samples ?? [];
  const sum = (family: string, fits: (labels: Readonly<Record<string, string>>) => boolean): number =>
    samples(family)
      .filter(({ labels }) => fits(labels))
      .reduce((total, { value }) => total + value, 0);
  const atIll = samples('gateway_upstream_attempts_total').filter(({ labels }) => labels.target === 'ill/m');
  return {
    counted: {
      good: sum('gateway_requests_total', ({ status }) => status === '200'),
      failed: sum('gateway_requests_total', ({ status }) => status !== '200'),
      retries: sum('gateway_retries_total', () => true),
      timeouts: sum('gateway_upstream_attempts_total', ({ result }) => result === 'timeout'),
    },
    attempts: Object.fromEntries(atIll.map(({ labels, value }) => [labels.result ?? '', value])),
  };
}

/**
 * Failures that no rule explains. A call that an upstream has had for a second when its connection breaks is not sent
 * elsewhere. A machine that is too slow has such calls.
 */
export function unexcusedOf(
  illness: Illness,
  failures: readonly OpenLoadFailure[],
): readonly OpenLoadFailure[] {
  return failures.filter(({ askedMs }) => illness !== 'killed' || askedMs < resendableMs);
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function lines({ illness }: FailoverPlan, figures: FailoverFigures): readonly Line[] {
  const { due, answers, failures, shares, latenciesMs, counted, attempts } = figures;
  const { timeouts } = counted;
  const unexcused = unexcusedOf(illness, failures);
  const errors = unexcused.length === 0 ? 0 : `${unexcused.length}: ${describeFailures(unexcused)}`;
  return [
    told('requests', due),
    held('answers', answers, `${due}`, answers === due),
    // A target may still be working on a call that it has taken and not answered, so the call is not sent again.
    illness === 'silent'
      ? held('errors', errors, `${timeouts}, those that it had taken`, failures.length === timeouts)
      : held('errors', errors, '0', unexcused.length === 0),
    told('of calls that a killed target had for a second', failures.length - unexcused.length),
    held(
      'answers that the gateway has counted',
      counted.good,
      `${latenciesMs.length}`,
      counted.good === latenciesMs.length,
    ),
    told('calls that went to the other target', counted.retries),
    told('attempts at the ill target', JSON.stringify(attempts)),
    told('its share before', percent(shares.before)),
    told('while it was ill', percent(shares.during)),
    held('in the last seconds', percent(shares.last), '> 20 %', shares.last > 0.2),
    told('well again to its first call', ms(figures.backMs)),
    told(`latency p50 (an answer takes ${answerMs} ms)`, ms(quantile(latenciesMs, 0.5))),
    told('p99', ms(quantile(latenciesMs, 0.99))),
    told('longest', ms(quantile(latenciesMs, 1))),
  ];
}

const full = { requestsPerSecond: 2000, seconds: 20, illAtSeconds: 5, wellAtSeconds: 12, lastSeconds: 3 };
/** The time limit that detects silence, which nothing else comes close to. */
const shortMs = 1000;
const longMs = 30_000;

const scenarioOf = (name: string, illness: Illness): Scenario => ({
  name,
  mostSeconds: 60,
  async run() {
    const plan = { ...full, illness, deadlineMs: illness === 'silent' ? shortMs : longMs };
    return lines(plan, await failover(plan));
  },
});

/** A target fails under load and recovers, in three ways. */
export const failoverScenarios: readonly Scenario[] = [
  scenarioOf('failover', 'killed'),
  scenarioOf('failover-errors', 'failing'),
  scenarioOf('failover-silence', 'silent'),
];
