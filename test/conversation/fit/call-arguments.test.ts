import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { fitCallArguments } from '../../../src/conversation/fit/call-arguments.js';
import type { ToolCallPart, Turn } from '../../../src/conversation/request.js';
import { plain } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const call = (input: string, custom = false): ToolCallPart => ({
  kind: 'toolCall',
  id: '1',
  name: 'f',
  input,
  custom,
  at: '',
});
const turns = (...parts: ToolCallPart[]): Turn[] => [{ role: 'assistant', parts }];
const objects = { ...anything, callArguments: 'object' } as const;

test('arguments that are no object are put into one where the protocol wants it', async (t) => {
  const given = turns(call('{"a":1.50}'), call('[1]'), call('{"a'), call(' '), call('free', true));
  t.equal(fittedBy(fitCallArguments, { ...plain, turns: given }, anything).request.turns, given);
  t.strictSame(
    fittedBy(fitCallArguments, { ...plain, turns: given }, objects).request.turns,
    turns(
      call('{"a":1.50}'),
      call('{"input":[1]}'),
      call('{"input":"{\\"a"}'),
      call('{}'),
      call('free', true),
    ),
  );
  const right = turns(call('{}'));
  t.equal(fittedBy(fitCallArguments, { ...plain, turns: right }, objects).request.turns, right);
});

const start = { kind: 'callStart', choice: 0, call: 0, id: '1', name: 'f', custom: false } as const;
const end = { kind: 'callEnd', choice: 0, call: 0 } as const;
const args = (text: string) => ({ kind: 'callArguments', choice: 0, call: 0, text }) as const;
const finish = (reason: 'toolCalls' | 'length') =>
  ({ kind: 'finish', choice: 0, reason, stopSequence: null }) as const;

function restored(...events: StreamEvent[]): StreamEvent[] {
  const { restorer } = fittedBy(fitCallArguments, { ...plain, from: 'messages' }, anything);
  const out: StreamEvent[] = [];
  for (const event of events) restorer?.event(event, out);
  return out;
}

test('a streamed call reaches a messages client as an object', async (t) => {
  t.equal(fittedBy(fitCallArguments, plain, anything).restorer, null, 'no other client needs it');
  t.strictSame(restored(start, args('{"a"'), args(':1}'), end, finish('toolCalls')), [
    start,
    args('{"a"'),
    args(':1}'),
    end,
    finish('toolCalls'),
  ]);
  t.strictSame(restored(start, args('ls '), args('-l'), end), [start, args('{"input":"ls -l"}'), end]);
});

test('a call that breaks off is closed, unless the limit of tokens has cut it', async (t) => {
  const usage: StreamEvent = {
    kind: 'usage',
    usage: { input: 1, output: 1, cached: 0, cacheWritten: 0, reasoning: 0 },
  };
  t.strictSame(restored(start, args('{"a":"b'), end, usage, finish('toolCalls')), [
    start,
    args('{"a":"b'),
    usage,
    args('"}'),
    end,
    finish('toolCalls'),
  ]);
  t.strictSame(restored(start, args('{"a":"b'), end, finish('length')), [
    start,
    args('{"a":"b'),
    end,
    finish('length'),
  ]);
  t.strictSame(restored(start, args('{"a":"b'), end, start, args('{}'), end), [
    start,
    args('{"a":"b'),
    args('"}'),
    end,
    start,
    args('{}'),
    end,
  ]);
});
