import { test } from 'tap';
import * as changes from '../../src/config/change.js';
import { demoConfig } from '../../src/config/demo.js';
import type { ResolvedConfig, ResolvedKey } from '../../src/config/resolve.js';
import { atOnce } from '../../src/wire/steps.js';
import { fc } from '../support/seed.js';

const configChange = (before: ResolvedConfig | null, next: ResolvedConfig): changes.ConfigChange =>
  atOnce(changes.configChange(before, next));
const changedConfig = (before: ResolvedConfig | null, change: changes.ConfigChange): ResolvedConfig =>
  atOnce(changes.changedConfig(before, change));

const demo = demoConfig(1);
const key = demo.keys[0] as ResolvedKey;

/** A config with keys of these numbers, each with a limit, and models of some of them. */
function configOf(numbers: readonly (readonly [number, number])[]): ResolvedConfig {
  const limits = (requestsPerMinute: number) => ({
    requestsPerMinute,
    tokensPerMinute: null,
    concurrent: null,
  });
  const unique = [...new Map(numbers)];
  return {
    ...demo,
    workers: unique.length,
    keys: unique.map(([number, limit]) => ({
      ...key,
      id: `k${number}`,
      hash: `${number}`,
      limits: limits(limit),
    })),
    models: unique.flatMap(([number, limit]) =>
      demo.models.slice(0, 1).map((model) => ({ ...model, name: `m${number}`, limits: limits(limit) })),
    ),
  };
}

/** As it comes out of another process, with its lists in one order. */
function inOrder(config: ResolvedConfig): unknown {
  const keys = [...config.keys].sort((a, b) => (a.id < b.id ? -1 : 1));
  const models = [...config.models].sort((a, b) => (a.name < b.name ? -1 : 1));
  return JSON.parse(JSON.stringify({ ...config, keys, models }));
}

test('a change makes of any config any other', (t) => {
  const number = fc.integer({ min: 0, max: 6 });
  const numbers = fc.array(fc.tuple(number, number), { maxLength: 8 });
  fc.assert(
    fc.property(numbers, numbers, (one, other) => {
      const [before, next] = [configOf(one), configOf(other)];
      const joined = new changes.JoinedParts();
      for (const part of changes.configParts(configChange(before, next)))
        joined.add(JSON.parse(JSON.stringify(part)));
      t.same(inOrder(changedConfig(before, joined.change())), inOrder(next));
      t.same(inOrder(changedConfig(null, configChange(null, next))), inOrder(next));
    }),
  );
  t.end();
});

test('of keys and models no more is told than what has changed', (t) => {
  const before = configOf(Array.from({ length: 1000 }, (_, number) => [number, 1]));
  const next = configOf(Array.from({ length: 1000 }, (_, number) => [number + 1, number === 500 ? 2 : 1]));
  const { keys, models, rest } = configChange(before, next);
  t.same(
    keys.put.map(({ id }) => id),
    ['k501', 'k1000'],
  );
  t.same(keys.removed, ['k0']);
  t.same(
    models.put.map(({ name }) => name),
    ['m501', 'm1000'],
  );
  t.notOk('keys' in rest || 'models' in rest);
  t.equal(changedConfig(before, configChange(before, before)).keys, before.keys);
  t.end();
});

test('whatever changes of a key or of a model is told', (t) => {
  const before = configOf([[1, 1]]);
  const [one] = before.keys;
  const [model] = before.models;
  const others = [
    { groups: ['default', 'more'] },
    { groups: [] },
    { expiresAt: 0 },
    { limits: null },
    { limits: { requestsPerMinute: 1, tokensPerMinute: 0, concurrent: null } },
    { budget: { usd: 1, per: 'day' as const } },
    { mayRoute: !one?.mayRoute },
    { hash: '2' },
  ];
  const isTold = (next: Partial<ResolvedConfig>): number => {
    const { keys, models } = configChange(before, { ...before, ...next });
    return keys.put.length + models.put.length;
  };
  for (const other of others)
    t.equal(isTold({ keys: before.keys.map((each) => ({ ...each, ...other })) }), 1, JSON.stringify(other));
  const targets = [...(model?.targets ?? []), ...(model?.targets ?? [])].map((target, priority) => ({
    ...target,
    priority,
  }));
  const withTargets = (list: typeof targets) => before.models.map((each) => ({ ...each, targets: list }));
  t.equal(isTold({ models: withTargets(targets) }), 1);
  const turned = configChange(
    { ...before, models: withTargets(targets) },
    { ...before, models: withTargets([...targets].reverse()) },
  );
  t.equal(turned.models.put.length, 1, 'the order of targets');
  t.equal(isTold(JSON.parse(JSON.stringify({ keys: before.keys, models: before.models }))), 0);
  t.end();
});
