import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { StoreSettings } from '../config/types.js';
import { type ShareSource, undivided } from '../limits/share-source.js';
import { createShareKeeper } from '../limits/shares.js';
import type { PrimaryGauge } from '../metrics/exposition.js';
import { createShareStore } from '../store/create.js';

/** Where this host has the units of rate limits from. */
export interface RateShares {
  readonly source: ShareSource;
  /** Resolves when the store was first asked, with or without an answer: before that nothing can be granted. */
  readonly ready: Promise<void>;
  /** Whether the store is there, where hosts share one. */
  gauges(): readonly PrimaryGauge[];
  /** Gives back what is free, and ends the connection. */
  close(): Promise<void>;
}

export interface RateSharesOptions {
  readonly settings: StoreSettings;
  /** The host's clock. */
  readonly now: () => number;
  /** See `ShareKeeperOptions.whenGone`. */
  readonly whenGone: () => 'open' | 'closed';
  readonly log: Logger;
}

/**
 * Joins the other hosts that share the store of a config, or has all limits to itself where its store is its own.
 */
export function createRateShares({ settings, now, whenGone, log }: RateSharesOptions): RateShares {
  const store = createShareStore(settings);
  if (store === null) {
    const none = Promise.resolve();
    return { source: undivided, ready: none, gauges: () => [], close: () => none };
  }
  let onHeard = (): void => {};
  const ready = new Promise<void>((resolve) => {
    onHeard = resolve;
  });
  const keeper = createShareKeeper({
    now,
    host: randomBytes(12).toString('base64url'),
    whenGone,
    exchange(statement, onAnswer) {
      store
        .exchange(statement)
        .then(onAnswer, () => onAnswer(null))
        .finally(onHeard);
    },
    onAvailable(isAvailable) {
      if (isAvailable) log.info('the store of limits is back: they hold over all hosts again');
      else log.error({ rates: whenGone() }, meaningOf[whenGone()]);
    },
  });
  return {
    source: keeper,
    ready,
    gauges: () => [
      {
        name: 'gateway_limits_store_available',
        value: keeper.isAvailable ? 1 : 0,
      },
    ],
    close() {
      keeper.leave();
      return store.close();
    },
  };
}

const meaningOf = {
  open: 'the store of limits cannot be reached: this host counts alone, with the whole limits',
  closed:
    'the store of limits cannot be reached: this host has what it was given, and refuses what is beyond that',
} as const;
