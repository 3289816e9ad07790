import type { RunningGateway } from './gateway.js';

/** What all calls have cost that have ended, as it is metered, in nano-dollars. */
export function costOf({ gateway }: Pick<RunningGateway, 'gateway'>): number {
  const rows = gateway.metrics().counters.find(([name]) => name === 'gateway_cost_usd_total');
  return (rows?.[2] ?? []).reduce((sum, nanos) => sum + nanos, 0);
}
