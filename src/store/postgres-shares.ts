import type { PostgresStoreSettings } from '../config/types.js';
import { listOf } from '../wire/json.js';
import { numberOf, PostgresLink, textOf } from './postgres-link.js';
import { fromColumn, toColumn } from './postgres-text.js';
import type { HostAnswer, HostStatement, ShareAnswer, ShareStore } from './shares.js';
import { storeUnavailable } from './store.js';

/** A host that would wait longer than this should count alone. */
const longestWaitMs = 1000;
/** How long it is remembered that a host lacks units of a pool. */
const wishMs = 1000;

/**
 * Shares in PostgreSQL, on a separate connection, so that other work of the store does not delay them. A host sends one
 * statement for everything, and the server only changes rows that differ.
 */
export function createPostgresShares(settings: PostgresStoreSettings): ShareStore {
  const timeoutMs = Math.min(settings.timeoutMs, longestWaitMs);
  const link = new PostgresLink({ settings, connections: 1, timeoutMs });
  return {
    async exchange({ host, number, leaseMs, pools }) {
      const stated = JSON.stringify(pools.map(statedRow));
      const [row] = await link.ask(exchangeStatement, [host, number, leaseMs, wishMs, stated]);
      return answerOf(row?.answer);
    },
    close: () => link.close(),
  };
}

const exchangeStatement = {
  name: 'share_exchange',
  text: 'SELECT exchange_shares($1, $2, $3, $4, $5) AS answer',
};

function statedRow({
  pool,
  limit,
  held,
  need,
  least,
  want,
  blockMs,
}: HostStatement['pools'][number]): unknown[] {
  return [toColumn(pool), limit, held, need, least, want, blockMs];
}

function answerOf(answer: unknown): HostAnswer {
  if (typeof answer !== 'object' || answer === null) {
    throw storeUnavailable(new Error('a later statement of this host came first'));
  }
  return {
    seen: numberOf(Reflect.get(answer, 'seen')),
    pools: listOf(Reflect.get(answer, 'pools')).map(shareOf),
    wanted: listOf(Reflect.get(answer, 'wanted')).map((pool) => fromColumn(textOf(pool))),
  };
}

function shareOf(pair: unknown): ShareAnswer {
  const [granted, left] = listOf(pair);
  return { granted: numberOf(granted), left: numberOf(left) };
}
