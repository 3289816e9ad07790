import type { Group, Key, Model } from '../../src/config/types.js';
import type { NewKey } from '../../src/keys/key-input.js';
import type { ManagedKey } from '../../src/keys/managed-key.js';
import { fc } from '../support/seed.js';

/** What an operator asks for who asks for nothing special. */
export const plainInput: NewKey = {
  id: null,
  label: '',
  groups: ['default'],
  limits: null,
  budget: null,
  mayRoute: false,
  expiresAt: null,
};

export function managedKey(changes: Partial<ManagedKey> = {}): ManagedKey {
  return {
    id: 'a',
    hash: 'a'.repeat(64),
    former: [],
    label: '',
    groups: ['default'],
    limits: null,
    budget: null,
    mayRoute: false,
    expiresAt: null,
    createdAt: 1,
    revokedAt: null,
    ...changes,
  };
}

export function configKey(id: string, hash: string): Key {
  return {
    id,
    hash,
    groups: [],
    models: new Map(),
    expiresAt: null,
    limits: null,
    budget: null,
    groupLimits: [],
    groupBudgets: [],
    priceFactor: 1,
    mayRoute: false,
  };
}

/** One without a name that opens nothing. */
export const plainGroup: Group = {
  name: '',
  models: [],
  limits: null,
  budget: null,
  priceFactor: null,
  shareVideos: false,
};

export const groups: readonly Group[] = [
  { ...plainGroup, name: 'default', models: ['*'] },
  {
    ...plainGroup,
    name: 'one',
    models: ['m1'],
    limits: { requestsPerMinute: 1, tokensPerMinute: null, concurrent: null },
  },
  { ...plainGroup, name: 'two', models: ['m2', 'm1'] },
];

export const models: ReadonlyMap<string, Model> = new Map(
  ['m1', 'm2', 'm3'].map((name) => [
    name,
    {
      name,
      protocols: new Set(),
      targets: [],
      drawing: [],
      created: 0,
      price: null,
      limits: null,
      budget: null,
      hedgeMs: null,
      tokens: { input: null, output: null },
    },
  ]),
);

const plain = { noNullPrototype: true } as const;
const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const time = fc.nat({ max: 4_000_000_000_000 });
const limit = fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));

/** Keys in every state. */
export const anyKey: fc.Arbitrary<ManagedKey> = fc.record(
  {
    id: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,9}$/),
    hash,
    former: fc.array(fc.record({ hash, until: time }, plain), { maxLength: 4 }),
    label: fc.string(),
    groups: fc.array(fc.string(), { maxLength: 3 }),
    limits: fc.option(
      fc.record({ requestsPerMinute: limit, tokensPerMinute: limit, concurrent: limit }, plain),
    ),
    budget: fc.option(
      fc.record(
        {
          usd: fc.double({ min: 0.01, max: 1e9, noNaN: true }),
          per: fc.constantFrom('day' as const, 'week' as const, 'month' as const),
        },
        plain,
      ),
    ),
    mayRoute: fc.boolean(),
    expiresAt: fc.option(time),
    createdAt: time,
    revokedAt: fc.option(time),
  },
  plain,
);
