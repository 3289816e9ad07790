import { test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import { noteGivenUp } from '../../../src/flow/record/consumption.js';
import { type OtherAttempt, unknownCost } from '../../../src/metrics/call-record.js';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { startGateway } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { postJson } from '../../support/post-json.js';
import { chunk, jsonAnswer, startRawUpstream, streamHead } from '../../support/upstream.js';

const protocols = ['audio'];
const target = { upstream: 'u0', model: 'm' };
const targets = [target];
/** Seven characters in ten bytes, one of them written as an escape of two halves. */
const spoken = 'Añb 😀.\n';
const input = JSON.stringify(spoken).replace('😀', '\\ud83d\\ude00');
const nanos = 7 * 15_000;
const sound = 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 4\r\n\r\nmp3!';
const counted = { input_tokens: 14, output_tokens: 5, total_tokens: 19 };
const event = (data: object): string => chunk(`data: ${JSON.stringify(data)}\n\n`);
const begun = streamHead + event({ type: 'speech.audio.delta', audio: 'QUJD' });
const streamed = (usage: object = {}): string =>
  `${begun}${event({ type: 'speech.audio.done', ...usage })}0\r\n\r\n`;

interface Case {
  readonly name: string;
  readonly model: string;
  readonly answer: string;
  readonly more?: string;
  readonly record: Partial<LedgerRecord>;
}

const cases: readonly Case[] = [
  {
    name: 'a whole sound',
    model: 'characters',
    answer: sound,
    record: { outcome: 'complete', characters: 7, units: 1, costNanoUsd: nanos, paidNanoUsd: 7 * 12_000 },
  },
  {
    name: 'a stream',
    model: 'characters',
    more: ',"stream_format":"sse"',
    answer: streamed(),
    record: { outcome: 'complete', characters: 7, costNanoUsd: nanos, tokensKnown: 'none' },
  },
  {
    name: 'one that counts tokens, which have no price',
    model: 'characters',
    answer: streamed({ usage: counted }),
    record: { characters: 7, costNanoUsd: nanos, inputTokens: 14, tokensKnown: 'exact' },
  },
  {
    name: 'one that counts tokens, which have a price',
    model: 'both',
    answer: streamed({ usage: counted }),
    record: { characters: 7, costNanoUsd: 14 * 1000 + 5 * 2000 },
  },
  {
    name: 'one that counts no tokens, though they have a price',
    model: 'both',
    answer: sound,
    record: { characters: 7, costNanoUsd: nanos, tokensKnown: 'none' },
  },
  {
    name: 'what the operator alone pays by the character',
    model: 'paid',
    answer: sound,
    record: { characters: 7, costNanoUsd: 40_000_000, paidNanoUsd: nanos },
  },
  {
    name: 'what has no price',
    model: 'unpriced',
    answer: sound,
    record: { characters: 0, costNanoUsd: 0, paidNanoUsd: null },
  },
  {
    name: 'a sound that breaks off: its vendor has read the whole text',
    model: 'characters',
    answer: begun,
    record: { outcome: 'upstream_error', characters: 7, units: 0, costNanoUsd: nanos },
  },
  {
    name: 'a call that fails',
    model: 'characters',
    answer: jsonAnswer(400, '{"error":{"message":"no such voice"}}'),
    record: { outcome: 'upstream_error', characters: 0, costNanoUsd: 0 },
  },
];

test('a text that is spoken is charged by the character', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const { store, lines } = openLedger(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: {
        characters: {
          protocols,
          targets: [{ ...target, cost: { characters: 12 } }],
          price: { characters: 15 },
        },
        both: { protocols, targets, price: { input: 1, output: 2, characters: 15 } },
        paid: { protocols, targets: [{ ...target, cost: { characters: 15 } }], price: { perCall: 0.04 } },
        unpriced: { protocols, targets },
      },
    },
  });
  for (const [index, { name, model, answer, more = '', record }] of cases.entries()) {
    upstream.answer = ({ socket }) => socket.end(answer);
    await postJson(
      `${gateway.url}/v1/audio/speech`,
      `{"model":"${model}","input":${input},"voice":"v"${more}}`,
    )
      .then((answered) => answered.arrayBuffer())
      .catch(() => {});
    const records = await lines(index + 1);
    const line = records.find(({ at }) => at === Math.max(...records.map((each) => each.at)));
    t.match(line, record, name);
  }
});

test('a budget reserves the characters of a text before it is spoken', async (t) => {
  const upstream = await startRawUpstream(t, sound);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: { protocols, targets, price: { characters: 1_000_000 }, budget: { usd: 10, per: 'day' } },
      },
    },
  });
  const speak = (text: string): Promise<Response> =>
    postJson(`${gateway.url}/v1/audio/speech`, { model: 'm', input: text, voice: 'v' });
  t.equal((await speak('four')).status, 200);
  t.equal((await speak('seven!!')).status, 429, 'six are left');
  t.equal((await speak('sixsix')).status, 200);
  t.equal((await speak('a')).status, 429);
});

test('what an attempt that was given up has cost is unknown where neither its characters nor the call have a price, or seconds have one', async (t) => {
  const costs: readonly (readonly [Parameters<typeof resolvePrice>[0], number, boolean?])[] = [
    [{ characters: 12 }, 7 * 12_000],
    [{ characters: 12, perSecond: 1 }, unknownCost],
    [{ perSecond: 1 }, unknownCost],
    [{ input: 1 }, unknownCost],
    [{ perCall: 0.001 }, 2_000_000],
    [{ perCall: 0.001 }, unknownCost, false],
    [{ perCall: 0.001, perSecond: 1 }, unknownCost],
    [{ perCall: 0.001, images: [{ size: '1x1', usd: 0.5 }] }, 1_000_000_000],
  ];
  for (const [cost, paid, isWritten = true] of costs) {
    const otherAttempts = new Map<object, OtherAttempt>();
    const attempt = {
      sentAt: 1,
      isWritten,
      isErrorComing: false,
      transform: { usageAtEnd: () => null },
      target: { model: 'm', upstream: { name: 'u' }, cost: resolvePrice(cost) },
    };
    const made = { size: '1x1', quality: null, resolution: null };
    const call = { characters: 7, units: 2, made, givenUp: null, otherAttempts };
    noteGivenUp(call, attempt as unknown as Parameters<typeof noteGivenUp>[1]);
    t.strictSame(
      [...otherAttempts.values()].map(({ paidNanoUsd }) => paidNanoUsd),
      [paid],
      JSON.stringify(cost),
    );
  }
});
