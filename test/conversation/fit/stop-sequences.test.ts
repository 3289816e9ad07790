import { test } from 'tap';
import type { Answer, AnswerPart, StreamEvent } from '../../../src/conversation/answer.js';
import { fitStopSequences } from '../../../src/conversation/fit/stop-sequences.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const fit = (given: Partial<ConversationRequest>, most: number, blank = true, leftOut = new LeftOut()) =>
  fittedBy(fitStopSequences, { ...plain, ...given }, { ...anything, stop: { most, blank } }, target, leftOut);
const text = (words: string, choice = 0) => ({ kind: 'text', choice, text: words }) as const;
const finish = (reason: 'stop' | 'stopSequence', stopSequence: string | null = null, choice = 0) =>
  ({ kind: 'finish', choice, reason, stopSequence }) as const;
const end = { kind: 'end' } as const;

function streamed(given: Partial<ConversationRequest>, ...events: StreamEvent[]): StreamEvent[] {
  const { restorer } = fit(given, 0);
  const out: StreamEvent[] = [];
  for (const event of events) restorer?.event(event, out);
  return out;
}

test('the upstream gets the sequences that it takes, and the others are looked for', async (t) => {
  const all = fit({ stop: ['a', ' '] }, 2);
  t.strictSame([all.request.stop, all.restorer], [['a', ' '], null]);
  const some = fit({ stop: ['a', 'b', 'c'] }, 2);
  t.strictSame(some.request.stop, ['a', 'b']);
  t.ok(some.restorer?.changesText);
  const blank = fit({ stop: ['\n', 'a'] }, 9, false);
  t.strictSame(blank.request.stop, ['a']);
  t.ok(blank.restorer);
});

test('no more are looked for than the answer can be searched for', async (t) => {
  const leftOut = new LeftOut();
  fit({ from: 'messages', stop: Array.from({ length: 64 }, (_, n) => `s${n}`) }, 0, true, leftOut);
  t.strictSame(leftOut.names, []);
  fit({ from: 'messages', stop: Array.from({ length: 65 }, (_, n) => `s${n}`) }, 0, true, leftOut);
  t.strictSame(leftOut.names, ['stop_sequences']);
});

test('a stream ends where a sequence is met', async (t) => {
  t.strictSame(streamed({ stop: ['END'] }, text('a E'), text('ND b'), text('c'), finish('stop'), end), [
    text('a '),
    finish('stopSequence', 'END'),
    end,
  ]);
  const call = { kind: 'callStart', choice: 0, call: 0, id: '', name: 'f', custom: false } as const;
  t.strictSame(streamed({ stop: ['END'] }, text('a E'), call, text('ND'), finish('stop'), end), [
    text('a '),
    text('E'),
    call,
    text('ND'),
    finish('stop'),
    end,
  ]);
});

test('tokens behind the end are not told', async (t) => {
  const token = (word: string) => ({ token: word, logprob: -1, bytes: null, top_logprobs: [] });
  const said = { ...text('a bEND c'), logprobs: ['a', ' b', 'END', ' c'].map(token) };
  t.match(streamed({ stop: ['END'] }, said), [
    { text: 'a b', logprobs: ['a', ' b'].map(token) },
    finish('stopSequence', 'END'),
    end,
  ]);
});

test('of several answers each is cut by itself', async (t) => {
  t.strictSame(
    streamed(
      { stop: ['X'], candidates: 2 },
      text('aX'),
      text('b', 1),
      text('c'),
      finish('stop'),
      text('Xd', 1),
      end,
    ),
    [text('a'), finish('stopSequence', 'X'), text('b', 1), finish('stopSequence', 'X', 1), end],
  );
});

test('log probabilities stay beside the text that they are of', async (t) => {
  const of = (token: string) => ({ token, logprob: 0, bytes: null, top_logprobs: [] });
  t.strictSame(
    streamed(
      { stop: ['END'] },
      { ...text('a E'), logprobs: [of('a'), of(' E')] },
      { ...text('ND b'), logprobs: [of('ND'), of(' b')] },
    ),
    [{ ...text('a '), logprobs: [of('a'), of(' E')] }, finish('stopSequence', 'END'), end],
  );
});

test('a whole answer ends where a sequence is met', async (t) => {
  const restored = (...parts: AnswerPart[]) => {
    const answer: Answer = { choices: [{ parts, finish: 'toolCalls', stopSequence: null }], usage: null };
    return fit({ stop: ['END'] }, 0).restorer?.answer(answer).choices[0];
  };
  const said = (words: string): AnswerPart => ({ kind: 'text', text: words });
  const call: AnswerPart = { kind: 'toolCall', id: '1', name: 'f', input: '{}', custom: false, at: '' };
  const hm: AnswerPart = { kind: 'reasoning', text: 'END', signature: null };
  t.match(restored(hm, said('a E'), said('ND b'), call), {
    parts: [hm, { text: 'a ' }],
    finish: 'stopSequence',
    stopSequence: 'END',
  });
  t.equal(restored(hm, said('a E'), said('ND b'), call)?.parts.length, 2);
  t.match(restored(said('a E'), call, said('ND')), { finish: 'toolCalls', parts: { length: 3 } });
  const source = (start: number, close: number) => ({ start, end: close, url: 'u', title: '' });
  t.match(restored({ kind: 'text', text: 'ab END', citations: [source(0, 2), source(3, 6)] })?.parts, [
    { text: 'ab ', citations: { length: 1 } },
  ]);
});
