import { setTimeout as pause } from 'node:timers/promises';
import type { UsageLine } from '../usage-gateway.js';
import { type CallEnd, makeCall } from './calls.js';
import type { CallPlan } from './plan.js';

/** The token of the operators of all gateways whose bill is held against their ledger. */
export const operatorsToken = 'a-token-of-operators';

const clients = 16;
/** A host whose processes were killed is there again within some seconds. */
const askAgainMs = 200;
const mostAttempts = 150;

/** A gateway as its clients and operators see it. */
export interface BilledGateway {
  readonly baseUrl: string;
  adminUrl(): Promise<string>;
}

/** A call with where and when its client made it and when it was over, by `performance.now`. */
export interface TimedEnd extends CallEnd {
  /** Number of the gateway. */
  readonly host: number;
  readonly from: number;
  readonly until: number;
}

/**
 * Makes the calls of all plans, in turn at each gateway. One that reaches nobody is made again.
 * @param onEnd hears of each call that is over
 */
export async function makeCalls(
  gateways: readonly Pick<BilledGateway, 'baseUrl'>[],
  plans: readonly CallPlan[],
  onEnd: (ended: number) => void = () => {},
): Promise<readonly TimedEnd[]> {
  const ends: TimedEnd[] = [];
  const waiting = [...plans];
  let ended = 0;
  const make = async (host: number, plan: CallPlan): Promise<void> => {
    const { baseUrl } = gateways[host] as BilledGateway;
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const from = performance.now();
      const end = await makeCall(baseUrl, plan);
      ends.push({ ...end, host, from, until: performance.now() });
      if (end.status !== 0 || end.hasLeft || end.requestId !== null) break;
      await pause(askAgainMs);
    }
    onEnd(++ended);
  };
  const client = async (number: number): Promise<void> => {
    const host = number % gateways.length;
    for (let plan = waiting.pop(); plan !== undefined; plan = waiting.pop()) await make(host, plan);
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  return ends;
}

/** All lines of the ledger, as its operators read them. */
export async function readLines(gateway: BilledGateway): Promise<readonly UsageLine[]> {
  const url = `${await gateway.adminUrl()}/usage/lines`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${operatorsToken}` } });
  const texts = (await answer.text()).split('\n').filter((line) => line !== '');
  return texts.map((line) => JSON.parse(line) as UsageLine);
}
