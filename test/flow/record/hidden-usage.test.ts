import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { askChat, askGoogle, askMessages, callPriced, streamed } from '../../support/billing/priced-calls.js';
import { startLedger } from '../../support/ledger.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

const price = { input: 1, output: 10, cached: 0.1, reasoning: 11 };
const text = 'hello there';

/** A usage whose total has more than its parts, or whose reasoning is more than its output. */
interface Case {
  readonly name: string;
  readonly kind: 'chat' | 'generateContent';
  readonly usage: object;
  readonly record: Partial<LedgerRecord>;
}

const plain = { prompt_tokens: 100, completion_tokens: 10 };
const cases: readonly Case[] = [
  {
    name: 'reasoning in the total alone',
    kind: 'chat',
    usage: { ...plain, total_tokens: 150 },
    record: { inputTokens: 100, outputTokens: 50, reasoningTokens: 40, costNanoUsd: 640_000 },
  },
  {
    name: 'more than the reasoning in the total',
    kind: 'chat',
    usage: { ...plain, completion_tokens_details: { reasoning_tokens: 5 }, total_tokens: 150 },
    record: { inputTokens: 100, outputTokens: 50, reasoningTokens: 5 },
  },
  {
    name: 'reasoning beyond the output',
    kind: 'chat',
    usage: { ...plain, completion_tokens_details: { reasoning_tokens: 40 } },
    record: { inputTokens: 100, outputTokens: 50, reasoningTokens: 40, costNanoUsd: 640_000 },
  },
  {
    name: 'reasoning beside the output, which the total leaves out',
    kind: 'chat',
    usage: { ...plain, reasoning_tokens: 7000, total_tokens: 110 },
    record: { inputTokens: 100, outputTokens: 7010, reasoningTokens: 7000, costNanoUsd: 77_200_000 },
  },
  {
    name: 'reasoning beside the output, and a cache beside the input',
    kind: 'chat',
    usage: {
      ...plain,
      prompt_tokens_details: { cached_tokens: 30 },
      completion_tokens_details: { reasoning_tokens: 30 },
      total_tokens: 170,
    },
    record: { inputTokens: 130, outputTokens: 40, cachedTokens: 30, reasoningTokens: 30 },
  },
  {
    name: 'reads of a cache beside the input, without what was written to it',
    kind: 'chat',
    usage: { ...plain, cache_read_input_tokens: 3000, cache_creation_input_tokens: 500, total_tokens: 3110 },
    record: { inputTokens: 3100, outputTokens: 10, cachedTokens: 3000 },
  },
  {
    name: 'reasoning beside the output of what was heard',
    kind: 'chat',
    usage: {
      ...plain,
      completion_tokens_details: { reasoning_tokens: 40 },
      prompt_audio_seconds: 1,
      total_tokens: 150,
    },
    record: { inputTokens: 100, outputTokens: 50, reasoningTokens: 40 },
  },
  {
    name: 'an input in the total alone',
    kind: 'chat',
    usage: { prompt_tokens: 0, completion_tokens: 10, total_tokens: 110 },
    record: { inputTokens: 100, outputTokens: 10, reasoningTokens: 0 },
  },
  ...[220, 999_999, 1e12].map(
    (total): Case => ({
      name: `a total of ${total}, which is counted twice or none that an answer can have`,
      kind: 'chat',
      usage: { ...plain, total_tokens: total },
      record: { inputTokens: 100, outputTokens: 10, reasoningTokens: 0, costNanoUsd: 200_000 },
    }),
  ),
  {
    name: "a cache beside Google's input",
    kind: 'generateContent',
    usage: {
      promptTokenCount: 100,
      candidatesTokenCount: 10,
      cachedContentTokenCount: 3000,
      totalTokenCount: 3110,
    },
    record: { inputTokens: 3100, outputTokens: 10, cachedTokens: 3000 },
  },
  {
    name: 'a cache beside the input',
    kind: 'chat',
    usage: { ...plain, prompt_tokens_details: { cached_tokens: 30 }, total_tokens: 140 },
    record: { inputTokens: 130, outputTokens: 10, cachedTokens: 30, costNanoUsd: 203_000 },
  },
  {
    name: 'tokens of sound beside those of text',
    kind: 'chat',
    usage: { ...plain, prompt_audio_seconds: 3, total_tokens: 148 },
    record: { inputTokens: 138, outputTokens: 10, costNanoUsd: 238_000 },
  },
  {
    name: "thoughts in Google's total alone",
    kind: 'generateContent',
    usage: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 150 },
    record: { inputTokens: 100, outputTokens: 50, reasoningTokens: 40, costNanoUsd: 640_000 },
  },
];

function wholeAnswer({ kind, usage }: Case): object {
  if (kind === 'generateContent') return googleAnswer(usage);
  const message = { role: 'assistant', content: text };
  return { id: 'c', object: 'chat.completion', created: 1, choices: [{ ...choice, message }], usage };
}

const choice = { index: 0, finish_reason: 'stop' };

function googleAnswer(usageMetadata: object): object {
  const content = { role: 'model', parts: [{ text }] };
  return { candidates: [{ index: 0, content, finishReason: 'STOP' }], usageMetadata };
}

function streamOf({ kind, usage }: Case): string {
  const made = { id: 'c', object: 'chat.completion.chunk', created: 1 };
  const events =
    kind === 'generateContent'
      ? [googleAnswer(usage)]
      : [
          { ...made, choices: [{ ...choice, delta: { content: text } }] },
          { ...made, choices: [], usage },
        ];
  const ends = kind === 'chat' ? ['data: [DONE]\n\n'] : [];
  const data = [...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), ...ends];
  return streamHead + data.map(chunk).join('') + lastChunk;
}

test('what only the total of a usage shows is charged, streamed or not, translated or not', async (t) => {
  const protocols = ['chat', 'messages', 'generateContent'];
  const { upstream, gateway, lines } = await startLedger(
    t,
    (kind, ofTarget) => ({ protocols, targets: [{ upstream: kind, ...ofTarget }], price }),
    { models: {} },
  );
  const googleStream = { ...askGoogle, path: askGoogle.path.replace(':generate', ':streamGenerate') };
  const expected: { readonly name: string; readonly id: string; readonly record: object }[] = [];
  for (const one of cases) {
    const { kind, name, record } = one;
    const asks = [
      { ...askChat, answer: jsonAnswer(200, JSON.stringify(wholeAnswer(one))) },
      { ...askMessages, answer: jsonAnswer(200, JSON.stringify(wholeAnswer(one))) },
      { ...askGoogle, answer: jsonAnswer(200, JSON.stringify(wholeAnswer(one))) },
      { ...streamed(askChat), answer: streamOf(one) },
      { ...streamed(askMessages), answer: streamOf(one) },
      { ...googleStream, path: `${googleStream.path}?alt=sse`, answer: streamOf(one) },
    ];
    for (const { answer, ...ask } of asks) {
      upstream.answer = answer;
      const label = `${name} (${ask.path})`;
      const id = await callPriced(t, gateway.url, { ...ask, name: label, kind });
      expected.push({ name: label, id, record: { ...record, tokensKnown: 'exact' } });
    }
  }
  const records = await lines(expected.length);
  for (const { name, id, record } of expected)
    t.match(
      records.find(({ requestId }) => requestId === id),
      record,
      name,
    );
});
