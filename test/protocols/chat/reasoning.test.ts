import { test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { decode } from './samples.js';

const none = { budget: null, show: true, summary: null };

test('reasoning is read in the words of other vendors with this protocol', async (t) => {
  const cases: readonly (readonly [JsonObject, object | null])[] = [
    [{ reasoning: { effort: 'High' } }, { ...none, effort: 'high' }],
    [{ reasoning: { max_tokens: 2000 } }, { ...none, effort: 'low', budget: 2000 }],
    [{ reasoning: { enabled: true } }, { ...none, effort: 'medium' }],
    [{ reasoning: { enabled: false, effort: 'high' } }, null],
    [{ reasoning: { effort: 'low', exclude: true } }, { ...none, effort: 'low', show: false }],
    [{ thinking: { type: 'enabled' } }, { ...none, effort: 'medium' }],
    [{ thinking: { type: 'enabled', budget_tokens: 16_000 } }, { ...none, effort: 'high', budget: 16_000 }],
    [
      { thinking: { type: 'enabled' }, reasoning_effort: 'max' },
      { ...none, effort: 'max' },
    ],
    [{ thinking: { type: 'disabled' }, reasoning_effort: 'max' }, null],
    [{ thinking: { type: 'adaptive' } }, { ...none, effort: 'medium' }],
    [{ enable_thinking: true }, { ...none, effort: 'medium' }],
    [
      { enable_thinking: true, thinking_budget: 500 },
      { ...none, effort: 'low', budget: 500 },
    ],
    [{ enable_thinking: false, thinking_budget: 500 }, null],
    [{ thinking_budget: Number.POSITIVE_INFINITY }, null],
    [{ thinking_budget: 1e300 }, null],
    [{ thinking_budget: 1024.5 }, null],
    [{ reasoning: {}, thinking: {} }, null],
    [{ reasoning: 'high', thinking: true, enable_thinking: 1, thinking_budget: -1 }, null],
    [{ reasoning: { effort: 7, max_tokens: 'x' } }, null],
  ];
  for (const [members, reasoning] of cases)
    t.strictSame(decode(members).reasoning, reasoning, JSON.stringify(members));
});

test('what is read of them is not named as left out, and what is not read is', async (t) => {
  const read = {
    reasoning: { effort: 'low', exclude: true, enabled: true, max_tokens: 1 },
    thinking: { type: 'enabled', budget_tokens: 1 },
    enable_thinking: true,
    thinking_budget: 1,
    usage: { include: true },
  };
  t.strictSame(decode(read).leftOut, []);
  const more = { reasoning: { summary: 'auto' }, thinking: { keep: 'all' }, preserve_thinking: true };
  t.strictSame(decode(more).leftOut, ['reasoning.summary', 'thinking.keep', 'preserve_thinking']);
  const off = { thinking: { type: 'disabled' } };
  t.strictSame(decode(off).leftOut, ['thinking.type']);
  t.strictSame(decode({ ...off, reasoning_effort: 'max' }).leftOut, ['thinking.type', 'reasoning_effort']);
  t.strictSame(decode({ ...off, reasoning_effort: 'none' }).leftOut, ['thinking.type']);
  t.strictSame(decode({ enable_thinking: false, reasoning_effort: 'low' }).leftOut, ['reasoning_effort']);
});

test("a stream's usage is asked for by either of its members", async (t) => {
  t.equal(decode({ stream_options: { include_usage: true } }).includeUsage, true);
  t.equal(decode({ usage: { include: true } }).includeUsage, true);
  t.equal(decode({ usage: { include: false } }).includeUsage, false);
  t.equal(decode({ usage: true, stream_options: null }).includeUsage, false);
});
