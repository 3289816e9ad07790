import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { noSignature } from '../../../src/conversation/signature.js';
import { messagesCodec, restore } from '../../../src/protocols/messages/index.js';
import { createSealer } from '../../../src/wire/seal.js';
import { context, decode, target } from './samples.js';

const compacting = { ...context, compaction: 'block' } as const;
const usage = { input: 3, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };

function streamed(...events: StreamEvent[]): string {
  const encoder = messagesCodec.createEncoder(compacting);
  return events.map((event) => encoder.encode(event)).join('');
}

test('a compaction that is asked for is the question for a summary', async (t) => {
  const body = { compaction: { type: 'summarize', instructions: ' ' }, stop_sequences: ['x'] };
  const { turns, compaction, maxTokens, leftOut } = decode(body);
  t.equal(compaction, 'block');
  t.equal(maxTokens, null);
  t.match(turns.at(-1), { role: 'user', parts: [{ text: /^Write a thorough summary/ }] });
  t.strictSame(leftOut, []);
  t.equal(decode({ compaction: null }).compaction, null);
  t.match(decode({ compaction: { type: 'other' } }), { compaction: null, leftOut: ['compaction'] });
});

test('a summary that is cut, filtered or empty is no compaction', async (t) => {
  const text = { kind: 'text', choice: 0, text: 'so' } as const;
  const finish = (reason: 'length' | 'stop') =>
    ({ kind: 'finish', choice: 0, reason, stopSequence: null }) as const;
  t.match(streamed(text, finish('length'), { kind: 'end' }), /"type":"error".*was cut/);
  t.match(streamed(finish('stop'), { kind: 'end' }), /"type":"error".*no summary/);
  t.match(
    streamed({ kind: 'usage', usage }, text, finish('stop'), { kind: 'end' }),
    /"type":"compaction_delta","content":"so"/,
  );
  const whole = (finish: 'length' | 'stop') =>
    messagesCodec.encodeAnswer(
      { choices: [{ parts: [{ kind: 'text', text: 'so' }], finish, stopSequence: null }], usage },
      compacting,
    );
  t.throws(() => whole('length'), /was cut/);
  t.match(JSON.parse(whole('stop')), {
    content: [{ type: 'compaction', content: 'so', signature: noSignature, tool_changes: [] }],
    stop_reason: 'compaction',
  });
});

test('toward the vendor a summary that was made here is said by the user', async (t) => {
  const made = { type: 'compaction', content: 'so far', encrypted_content: null, signature: noSignature };
  const theirs = { ...made, signature: 'sig' };
  const of = (block: object) => ({ messages: [{ role: 'assistant', content: [block] }] });
  t.match(restore(of(made), createSealer('s'), target), {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'so far' }] }],
  });
  t.equal(restore(of(theirs), createSealer('s'), target), null);
  const change = { type: 'tool_removal', tool: { type: 'tool_reference', name: 'f' } };
  t.strictSame(
    restore(of({ ...made, tool_changes: [change] }), createSealer('s'), target),
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'so far' }, change] }] },
    'the tools stay those that the conversation had come to',
  );
});
