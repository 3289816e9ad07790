import { test } from 'tap';
import type { AnswerPart, StreamEvent } from '../../../src/conversation/answer.js';
import { cutId, markWithoutReasoning, tokensIn } from '../../../src/conversation/carrying-id.js';
import { fitSignedCalls } from '../../../src/conversation/fit/signed-calls.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { tagSignature, untagSignature } from '../../../src/conversation/signature.js';
import { tagOpaque, tagUnsigned } from '../../../src/conversation/unsigned-reasoning.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { fittedBy } from './rules.js';

const seal = (protocol: 'messages' | 'generateContent', value: string) =>
  tagSignature({ protocol, model: 'm', value, redacted: false });
const fit = (request: ConversationRequest, { rules } = messagesCodec, leftOut = new LeftOut()) =>
  fittedBy(fitSignedCalls, request, rules, target, leftOut).restorer;
const signature = (token: string): StreamEvent => ({ kind: 'signature', choice: 0, signature: token });
const start = (call: number, id: string): StreamEvent => ({
  kind: 'callStart',
  choice: 0,
  call,
  id,
  name: 'f',
  custom: false,
});

/** The ids of the calls of a stream, and what they carry. */
function carried(...events: readonly StreamEvent[]) {
  const out: StreamEvent[] = [];
  const restorer = fit(plain);
  for (const event of events) restorer?.event(event, out);
  return out.flatMap((event) => (event.kind === 'callStart' ? [cutId(event.id)] : []));
}

test('only what chat has no field for is carried by calls', async (t) => {
  t.ok(fit(plain));
  for (const from of ['responses', 'generateContent'] as const) t.equal(fit({ ...plain, from }), null, from);
  t.ok(fit({ ...plain, from: 'responses', returnsEncrypted: false }));
  t.equal(fit({ ...plain, from: 'responses', returnsEncrypted: true }), null);
  t.equal(fit(plain, chatCodec), null);
  t.ok(fit(plain, responsesCodec));
  t.equal(fit({ ...plain, functionForm: true }), null, 'the older form of calls has no id');
});

test('a call carries the signatures that came before it', async (t) => {
  const [one, two] = [seal('messages', 'one'), seal('messages', 'two')];
  t.strictSame(
    carried(
      signature(one),
      { kind: 'text', choice: 0, text: 'so' },
      signature(two),
      start(0, 'c1'),
      start(1, 'c2'),
    ),
    [
      { id: 'c1', tokens: [one, two] },
      { id: 'c2', tokens: [] },
    ],
  );
});

test('the signature of a generateContent upstream’s text is not that of the call behind it', async (t) => {
  const [one, two] = [seal('generateContent', 'one'), seal('generateContent', 'two')];
  t.strictSame(
    carried(signature(one), { kind: 'text', choice: 0, text: 'so' }, signature(two), start(0, 'c1')),
    [{ id: 'c1', tokens: [two] }],
  );
});

test('what is more than a call can carry waits for none: a field gets it at once, and chat, which has none, loses it', async (t) => {
  const tokens = Array.from({ length: 20 }, (_, index) => seal('messages', String(index)));
  const long = Array.from({ length: 3 }, (_, index) => seal('messages', String(index).repeat(2 << 20)));
  for (const many of [tokens, long]) {
    const out: StreamEvent[] = [];
    const restorer = fit({ ...plain, from: 'messages' });
    for (const token of many.slice(0, -1)) restorer?.event(signature(token), out);
    t.ok(out.length > 0, 'in the field');
    for (const event of [signature(many.at(-1) ?? ''), start(0, 'c1')]) restorer?.event(event, out);
    const told = out.flatMap((event) => (event.kind === 'signature' ? [event.signature] : []));
    const called = out.flatMap((event) => (event.kind === 'callStart' ? cutId(event.id).tokens : []));
    t.strictSame([...told, ...called], many, 'all in their order');
    t.strictSame(
      carried(...many.map(signature), start(0, 'c1'), signature(tokens[0] ?? ''), start(1, 'c2')),
      [
        { id: 'c1', tokens: [] },
        { id: 'c2', tokens: [tokens[0]] },
      ],
    );
  }
});

test('a call without an id gets one to carry them', async (t) => {
  const token = seal('generateContent', 's');
  const [first, second] = carried(signature(token), start(0, ''), signature(token), start(1, ''));
  t.match(first, { id: /^call_[0-9a-f]{24}$/, tokens: [token] });
  t.not(first?.id, second?.id);
});

test('a whole answer is restored alike, and what is too long for an id stands beside it', async (t) => {
  const token = seal('messages', 's');
  const long = seal('messages', 'x'.repeat(20_000));
  const call = { kind: 'toolCall', id: 'c1', name: 'f', input: '{}', custom: false, at: '' } as const;
  const restored = fit(plain)?.answer({
    choices: [
      {
        parts: [
          { kind: 'reasoning', text: 'hm', signature: token },
          call,
          { kind: 'reasoning', text: '', signature: long },
          { ...call, id: 'c2' },
        ],
        finish: 'toolCalls',
        stopSequence: null,
      },
    ],
    usage: null,
  });
  const [, one, , two] = restored?.choices[0]?.parts ?? [];
  t.strictSame(one?.kind === 'toolCall' ? cutId(one.id) : null, { id: 'c1', tokens: [token] });
  t.match(two, { id: 'c2' });
  t.strictSame(two?.kind === 'toolCall' ? tokensIn(two.signature ?? '') : null, [long]);
});

test('words that are too long for an id stand beside the call, and only what is too long for that is lost', async (t) => {
  const token = (length: number) =>
    tagSignature({
      protocol: 'messages',
      model: 'm',
      value: 's',
      redacted: false,
      words: 'x'.repeat(length),
    });
  const callOf = (length: number) => {
    const out: StreamEvent[] = [];
    const restorer = fit(plain);
    for (const event of [signature(token(length)), start(0, 'c1')]) restorer?.event(event, out);
    const [call] = out;
    return call?.kind === 'callStart' ? call : null;
  };
  t.strictSame(cutId(callOf(100)?.id ?? ''), { id: 'c1', tokens: [token(100)] });
  const long = callOf(20_000);
  t.equal(long?.id, 'c1');
  t.strictSame(tokensIn(long?.signature ?? ''), [token(20_000)]);
  const lost = callOf(300_000);
  t.equal(lost?.signature, undefined);
  const [carriedToken = null] = cutId(lost?.id ?? '').tokens;
  t.match(untagSignature(carriedToken), { value: 's', words: undefined, isWordless: true });
});

test('a chat client’s own reasoning is told to be left out where it cannot go', async (t) => {
  const request: ConversationRequest = {
    ...plain,
    turns: [
      {
        role: 'assistant',
        parts: [{ kind: 'reasoning', text: 'hm', signature: tagUnsigned('reasoning', '') }],
      },
    ],
  };
  for (const [codec, names] of [
    [messagesCodec, ['reasoning']],
    [responsesCodec, ['reasoning']],
    [chatCodec, []],
  ] as const) {
    const leftOut = new LeftOut();
    fit(request, codec, leftOut);
    t.strictSame(leftOut.names, names);
  }
});

const silent = { ...plain, from: 'messages', reasoning: null } as const;
const shown = {
  ...silent,
  reasoning: { effort: null, budget: 2048, show: true, summary: null },
} as const;
const thought: StreamEvent = { kind: 'reasoning', choice: 0, text: 'hm' };
const text: StreamEvent = { kind: 'text', choice: 0, text: 'so' };
const finish: StreamEvent = { kind: 'finish', choice: 0, reason: 'stop', stopSequence: null };
const call = { kind: 'toolCall', id: 'c1', name: 'f', input: '{}', custom: false, at: '' } as const;

/** What a client gets of a stream: kinds of events, tokens in the field, and what calls carry. */
function told(request: ConversationRequest, ...events: readonly StreamEvent[]) {
  const out: StreamEvent[] = [];
  const restorer = fit(request, chatCodec);
  for (const event of events) restorer?.event(event, out);
  return out.map((event) => {
    if (event.kind === 'signature') return event.signature;
    return event.kind === 'callStart' ? cutId(event.id) : event.kind;
  });
}

/** The same of a whole answer. */
function toldWhole(request: ConversationRequest, ...parts: readonly AnswerPart[]) {
  const choice = { parts, finish: 'stop', stopSequence: null } as const;
  const answer = fit(request, chatCodec)?.answer({ choices: [choice], usage: null });
  return answer?.choices[0]?.parts.map((part) => {
    if (part.kind === 'reasoning') return part.signature;
    return part.kind === 'toolCall' ? cutId(part.id) : part.kind;
  });
}

test('a messages client that asked for no reasoning gets it with its calls alone', async (t) => {
  const [one, two] = [tagUnsigned('reasoning', 'm'), seal('generateContent', 'two')];
  const carrying = { id: 'c1', tokens: [one, two] };
  t.strictSame(told(silent, thought, signature(one), text, signature(two), start(0, 'c1'), finish), [
    'reasoning',
    'text',
    carrying,
    'finish',
  ]);
  t.strictSame(told(silent, thought, signature(one), text, finish), ['reasoning', 'text', 'finish']);
  const reasoning = { kind: 'reasoning', text: 'hm', signature: one } as const;
  const alone = { kind: 'reasoning', text: '', signature: two } as const;
  t.strictSame(toldWhole(silent, reasoning, { kind: 'text', text: 'so' }, alone, call), [
    null,
    'text',
    null,
    carrying,
  ]);
  t.strictSame(toldWhole(silent, reasoning, { kind: 'text', text: 'so' }), [null, 'text']);
});

test('details of reasoning that come after the last call of a stream are in the field of a client that has one', async (t) => {
  const [one, two] = [tagOpaque('reasoning_details', '[]', 'm'), seal('generateContent', 'two')];
  const bare = { id: 'c1', tokens: [] };
  for (const request of [silent, shown, { ...silent, from: 'responses', returnsEncrypted: false } as const]) {
    t.strictSame(told(request, start(0, 'c1'), signature(one), signature(two), finish), [
      bare,
      one,
      'finish',
    ]);
    const late = { kind: 'reasoning', text: '', signature: one } as const;
    t.strictSame(toldWhole(request, call, late), [bare, null, one]);
  }
});

test('no client returns reasoning that an upstream encrypted after its last call, and refuses with nothing after it', async (t) => {
  const encrypted = tagSignature({ protocol: 'responses', model: 'm', value: 'rs_2:ENC', redacted: true });
  const bare = { id: 'c1', tokens: [] };
  for (const token of [encrypted, seal('messages', 'S'), tagUnsigned('reasoning', 'm')])
    for (const request of [silent, shown]) {
      t.strictSame(told(request, start(0, 'c1'), signature(token), finish), [bare, 'finish']);
      const late = { kind: 'reasoning', text: '', signature: token } as const;
      t.strictSame(toldWhole(request, call, late), [bare, null]);
    }
});

test('what an id has no room for stands in the field of a messages client', async (t) => {
  const long = seal('generateContent', 'x'.repeat(20_000));
  const bare = { id: 'c1', tokens: [] };
  t.strictSame(told(silent, signature(long), start(0, 'c1')), [long, bare]);
  t.strictSame(toldWhole(silent, { kind: 'reasoning', text: '', signature: long }, call), [null, long, bare]);
});

test('a messages client that asked for reasoning returns what stands beside its text, and calls carry the rest', async (t) => {
  const [one, two] = [tagUnsigned('reasoning', 'm'), seal('generateContent', 'two')];
  const carrying = { id: 'c1', tokens: [two] };
  t.strictSame(told(shown, thought, signature(one), text, signature(two), start(0, 'c1')), [
    'reasoning',
    one,
    'text',
    carrying,
  ]);
  t.strictSame(
    told(shown, thought, text, signature(two), start(0, 'c1')),
    ['reasoning', 'text', carrying],
    'it does not sign the text that came long before it',
  );
  t.strictSame(told(shown, signature(two), text, finish), [two, 'text', 'finish']);
  const reasoning = { kind: 'reasoning', text: 'hm', signature: one } as const;
  const alone = { kind: 'reasoning', text: '', signature: two } as const;
  t.strictSame(toldWhole(shown, reasoning, { kind: 'text', text: 'so' }, alone, call), [
    one,
    'text',
    null,
    carrying,
  ]);
  t.strictSame(toldWhole(shown, alone, { kind: 'text', text: 'so' }), [null, two, 'text']);
});

test('a messages client with a budget for thinking gets calls that tell that none led to them', async (t) => {
  const budget = (show: boolean): ConversationRequest => ({
    ...shown,
    reasoning: { effort: 'low', budget: 2048, show, summary: null },
  });
  const marked = (request: ConversationRequest, ...events: readonly StreamEvent[]) => {
    const out: StreamEvent[] = [];
    const restorer = fit(request);
    for (const event of events) restorer?.event(event, out);
    return out.flatMap((event) => (event.kind === 'callStart' ? [event.id] : []));
  };
  const both = [start(0, 'c1'), start(1, 'c2')];
  const id = markWithoutReasoning('c1');
  for (const show of [true, false]) {
    t.strictSame(marked(budget(show), text, ...both), [id, 'c2'], 'one is enough');
    const whole = fit(budget(show))?.answer({
      choices: [{ parts: [call], finish: 'toolCalls', stopSequence: null }],
      usage: null,
    });
    t.match(whole?.choices[0]?.parts, [{ id }]);
  }
  t.strictSame(marked(budget(true), thought, ...both), ['c1', 'c2'], 'its thinking tells');
  const adaptive = {
    ...shown,
    reasoning: { effort: 'low', budget: null, show: true, summary: null },
  } as const;
  t.strictSame(marked(adaptive, ...both), ['c1', 'c2'], 'without a budget its vendor refuses nothing');
});
