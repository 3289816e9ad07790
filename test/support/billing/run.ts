import { setTimeout as pause } from 'node:timers/promises';
import type { UsageLine } from '../usage-gateway.js';
import { type CallEnd, makeCall } from './calls.js';
import type { CallPlan } from './plan.js';

/** The operators' token of all gateways whose ledger is compared with the bill. */
export const operatorsToken = 'a-token-of-operators';

const clients = 16;
/** A host whose processes were killed is back within some seconds. */
const askAgainMs = 200;
const mostAttempts = 150;

/** A gateway as its clients and operators use it. */
export interface BilledGateway {
  readonly baseUrl: string;
  adminUrl(): Promise<string>;
}

/** A call, the gateway that it was made at, and its start and end by `performance.now()`. */
export interface TimedEnd extends CallEnd {
  /** Number of the gateway. */
  readonly host: number;
  readonly from: number;
  readonly until: number;
}

/**
 * Makes the calls of all plans, at each gateway in turn. A call that cannot connect is repeated.
 * @param onEnd called with each call that has ended
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

/** Reads all lines of the ledger through the operators' API. */
export async function readLines(gateway: BilledGateway): Promise<readonly UsageLine[]> {
  const url = `${await gateway.adminUrl()}/usage/lines`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${operatorsToken}` } });
  const texts = (await answer.text()).split('\n').filter((line) => line !== '');
  return texts.map((line) => JSON.parse(line) as UsageLine);
}
