import type { Test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import type { WholeStore } from '../../src/store/store.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { readPage } from '../../src/usage/queries.js';
import { usageLedger } from '../../src/usage/sums.js';
import { eventually } from './eventually.js';
import { type RunningGateway, startGateway } from './gateway.js';
import { temporaryFolder } from './temporary-folder.js';
import { type RawUpstream, startRawUpstream } from './upstream.js';

/** Returns the calls in the pages of a store's ledger: all except those of PostgreSQL. */
export async function readLedger(store: Pick<WholeStore, 'readLines'>): Promise<readonly LedgerRecord[]> {
  const range = { from: 0, until: Date.now() + 86_400_000 };
  const { lines } = await store.readLines(usageLedger, range, 1000, null);
  return lines.flatMap(({ value }) => readPage(value));
}

interface OpenLedger {
  /** Part of a config. */
  readonly store: Extract<StoreSettings, { readonly kind: 'embedded' }>;
  /** Resolves with its calls, or the wanted ones, once there are this many. */
  lines(count: number, isWanted?: (record: LedgerRecord) => boolean): Promise<readonly LedgerRecord[]>;
}

/** An embedded store for a gateway, whose ledger the test reads. */
export function openLedger(t: Test, path: string = temporaryFolder(t)): OpenLedger {
  const store = { kind: 'embedded', path, taskDays: 7 } as const;
  const reader = createStore(store);
  t.teardown(() => reader.close());
  return {
    store,
    lines: (count, isWanted = () => true) =>
      eventually(async () => (await readLedger(reader)).filter(isWanted), {
        fits: ({ length }) => length >= count,
        everyMs: 50,
      }),
  };
}

interface LedgerStage extends Pick<OpenLedger, 'lines'> {
  /** The upstream of all kinds, which answers as the test says. */
  readonly upstream: RawUpstream;
  readonly gateway: RunningGateway;
}

/**
 * Starts a gateway with a ledger and an upstream of each kind.
 * @param model makes the model of each protocol that an upstream may be called in
 * @param more further `chat` models, and further parts of the config
 */
export async function startLedger(
  t: Test,
  model: (upstream: string, ofTarget: object) => object,
  { models = {}, ...more }: { readonly models?: object } & Readonly<Record<string, unknown>> = {},
): Promise<LedgerStage> {
  const { store, lines } = openLedger(t);
  const upstream = await startRawUpstream(t, '');
  const root = upstream.url.replace(/\/v1$/, '');
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      upstreams: {
        chat: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'] },
        messages: { kind: 'messages', baseUrl: root, apiKeys: ['k'] },
        generateContent: { kind: 'generateContent', baseUrl: root, apiKeys: ['k'] },
      },
      models: {
        chat: model('chat', {}),
        responses: model('chat', { responses: 'only' }),
        messages: model('messages', {}),
        generateContent: model('generateContent', {}),
        ...models,
      },
      ...more,
    },
  });
  return { upstream, gateway, lines };
}
