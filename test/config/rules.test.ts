import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { presets } from '../../src/config/presets.js';
import { mergeHeaders, mergeRules } from '../../src/config/rules.js';
import type { RuleSettings } from '../../src/config/rules-schema.js';
import type { Snapshot } from '../../src/config/types.js';
import { testConfig } from '../support/gateway-config.js';
import { buildSnapshot } from '../support/snapshot.js';

const merged = (...layers: RuleSettings[]) => mergeRules(layers);

test('rules that change nothing are none', async (t) => {
  for (const layers of [[], [{}], [{ sampling: true }], [{ headers: { drop: ['x'] } }], [{ drop: [] }]])
    t.equal(merged(...layers), null, JSON.stringify(layers));
  t.equal(merged({ sampling: false }, { sampling: true }), null, 'the last one wins');
});

test('what a later layer says of a member takes the place of what the others say', async (t) => {
  const below = {
    drop: ['seed', 'thinking', 'n'],
    set: { user: 'a' },
    rename: { max_completion_tokens: 'max_tokens' },
  };
  const rules = merged(below, {
    set: { seed: 1 },
    clamp: { 'thinking.budget_tokens': { max: 9 }, max_tokens: { max: 5 } },
    keep: ['n'],
  });
  t.strictSame(rules?.members, [
    { kind: 'set', path: ['user'], json: '"a"' },
    { kind: 'rename', path: ['max_completion_tokens'], to: 'max_tokens' },
    { kind: 'keep', path: ['n'] },
    { kind: 'set', path: ['seed'], json: '1' },
    { kind: 'clamp', path: ['thinking', 'budget_tokens'], min: null, max: 9 },
    { kind: 'clamp', path: ['max_tokens'], min: null, max: 5 },
  ]);
  t.strictSame(
    merged(below, { drop: ['max_tokens'] })?.members.map(({ path }) => path.join('.')),
    ['seed', 'thinking', 'n', 'user', 'max_tokens'],
  );
});

test('words are put over one another one by one, in any case', async (t) => {
  const rules = merged(
    { efforts: { XHIGH: 'high', none: 'low' }, roles: { developer: 'system' }, thinking: 'type' },
    { efforts: { xhigh: 'max' } },
  );
  t.strictSame(
    [...(rules?.efforts ?? [])],
    [
      ['xhigh', 'max'],
      ['none', 'low'],
    ],
  );
  t.strictSame([...(rules?.roles ?? [])], [['developer', 'system']]);
  t.equal(rules?.thinking, 'type');
});

test('headers of a later layer replace, leave out or let pass those of the others', async (t) => {
  t.strictSame(mergeHeaders({ headers: [] }, [{}]), { headers: [], clientHeaders: null });
  const of = (...layers: RuleSettings[]) => mergeHeaders({ headers: [['x-a', '1']] }, layers);
  const plain = of();
  t.strictSame(plain.headers, [['x-a', '1']]);
  t.strictSame([...(plain.clientHeaders?.without ?? [])], ['x-a']);
  t.strictSame(of({ headers: { set: { 'X-A': '2', 'X-B': '3' } } }).headers, [
    ['x-a', '2'],
    ['x-b', '3'],
  ]);
  const dropped = of({ headers: { drop: ['X-A'] } });
  t.strictSame(dropped.headers, []);
  t.strictSame([...(dropped.clientHeaders?.without ?? [])], ['x-a']);
  const passed = of({ headers: { drop: ['x-b'] } }, { headers: { pass: ['x-a', 'X-B'] } });
  t.strictSame(passed.headers, []);
  t.strictSame([...(passed.clientHeaders?.pass ?? [])], ['x-a', 'x-b']);
  t.equal(passed.clientHeaders?.without.size, 0);
});

test('betas are added to a list that the config sets, and else to the one of the client', async (t) => {
  const betas = { add: ['b', 'c'], drop: ['a'] };
  const set = mergeHeaders({ headers: [['anthropic-beta', 'a, b,d']] }, [{ betas }]);
  t.strictSame(set.headers, [['anthropic-beta', 'b,d,c']]);
  const later = mergeHeaders({ headers: [] }, [{ betas }, { betas: { add: ['a'], drop: ['c'] } }]);
  t.strictSame(later.clientHeaders?.addedBetas, ['b', 'a']);
  t.strictSame([...(later.clientHeaders?.droppedBetas ?? [])], ['c']);
});

function snapshotOf(upstream: object, target: object): Snapshot {
  const url = 'http://127.0.0.1:1/v1';
  const file = testConfig({ upstreams: [url], upstream: { ...upstream }, target: { ...target } });
  const config = parseConfig(JSON.stringify(file), { environment: {}, directory: '/', created: 1 });
  return buildSnapshot(config, { simulatorUrl: null });
}

test("a target's rules win over its upstream's, and both over the preset; its own preset replaces the other", async (t) => {
  const membersOf = (upstream: object, target: object) =>
    snapshotOf(upstream, target)
      .models.get('m')
      ?.targets[0]?.rules?.members.map(({ kind, path }) => `${kind} ${path.join('.')}`) ?? null;
  t.equal(membersOf({}, {}), null);
  t.strictSame(membersOf({ preset: 'kimi' }, {}), ['drop n']);
  t.strictSame(membersOf({ preset: 'kimi', rules: { clamp: { n: { max: 2 } } } }, {}), ['clamp n']);
  t.strictSame(membersOf({ rules: { drop: ['a', 'b'] } }, { rules: { set: { a: 1 } } }), ['drop b', 'set a']);
  t.strictSame(membersOf({ preset: 'kimi', rules: { drop: ['a'] } }, { preset: 'ollama' }), [
    'drop a',
    'rename max_completion_tokens',
  ]);
});

test('a preset gives settings of translation, which those of the target win over', async (t) => {
  const of = (upstream: object, target: object) =>
    snapshotOf(upstream, target).models.get('m')?.targets[0]?.translation;
  t.match(of({}, {}), { maxTokensField: 'max_completion_tokens', thinking: 'budget' });
  t.match(of({ preset: 'deepseek' }, {}), { maxTokensField: 'max_tokens', hostedTools: 'drop' });
  t.match(
    of(
      { preset: 'deepseek' },
      { translation: { maxTokensField: 'max_completion_tokens', hostedTools: 'reject' } },
    ),
    { maxTokensField: 'max_completion_tokens', hostedTools: 'reject' },
  );
  t.match(of({ kind: 'messages', preset: 'claude-adaptive' }, {}), { thinking: 'adaptive' });
});

test('a header that an upstream passes and a target sets is sent once, as the config has it', async (t) => {
  const target = snapshotOf(
    { rules: { headers: { pass: ['x-app'] } } },
    { rules: { headers: { set: { 'X-App': 'ours' } } } },
  ).models.get('m')?.targets[0];
  t.strictSame(target?.headers, [['x-app', 'ours']]);
  t.strictSame([...(target?.clientHeaders?.pass ?? [])], []);
});

test('headers that a target sets are secrets of its upstream, and those it passes are read of every request', async (t) => {
  const value = 'Bearer sk-very-long-secret-1';
  const snapshot = snapshotOf(
    {},
    { rules: { headers: { set: { 'x-token': value }, pass: ['X-App', 'user-agent'] } } },
  );
  t.ok(snapshot.upstreams.get('u0')?.secrets.keys.includes(value));
  t.strictSame(snapshot.upstreams.get('u0')?.headers, [], 'other targets do not send it');
  t.strictSame(snapshot.models.get('m')?.targets[0]?.headers, [['x-token', value]]);
  t.strictSame(snapshot.passedHeaders, ['x-app', 'user-agent']);
});

for (const [name, preset] of Object.entries(presets)) {
  test(`what the preset ${name} says passes the check of a config file`, async (t) => {
    for (const kind of preset.kinds) {
      const { rules, translation } = preset;
      // What belongs to one protocol is passed over by the others.
      const { thinking: _, ...others } = rules;
      t.doesNotThrow(() =>
        snapshotOf({ kind, rules: kind === 'messages' ? others : rules }, { translation }),
      );
      t.doesNotThrow(() => snapshotOf({ kind, preset: name }, {}));
    }
    t.ok(preset.sources.every((source) => source.startsWith('https://')));
  });
}
