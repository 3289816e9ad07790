import type { RunningGateway } from './gateway.js';

type Counted = Pick<RunningGateway, 'gateway'>;

/** Returns the metered cost of all ended calls, in nano-dollars. */
export function costOf(gateway: Counted): number {
  return sumOf(gateway, 'gateway_cost_usd_total');
}

/** Returns the part of it that was given back. */
export function givenBackOf(gateway: Counted): number {
  return sumOf(gateway, 'gateway_cost_given_back_usd_total');
}

function sumOf({ gateway }: Counted, family: string): number {
  const rows = gateway.metrics().counters.find(([name]) => name === family);
  return (rows?.[2] ?? []).reduce((sum, nanos) => sum + nanos, 0);
}
