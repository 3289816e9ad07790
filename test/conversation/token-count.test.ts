import { test } from 'tap';
import type { MediaPart, Turn } from '../../src/conversation/request.js';
import { estimateTokens } from '../../src/conversation/token-count.js';
import { plain } from '../protocols/messages/samples.js';

const ofTurns = (...turns: Turn[]) => estimateTokens({ ...plain, turns });
const user = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] });
const media = (kind: MediaPart['kind'], bytes: number): MediaPart => ({
  kind,
  source: { kind: 'data', mediaType: 'x/y', data: 'A'.repeat((bytes / 3) * 4) },
  detail: null,
  name: null,
  at: '',
});

test('texts count by their bytes, and every message a little more', async (t) => {
  t.equal(ofTurns(user('a'.repeat(400))), 104);
  t.equal(ofTurns(user('漢'.repeat(400))), 304);
  t.equal(ofTurns(user(''), { role: 'system', text: 'a'.repeat(8) }), 10);
  t.equal(estimateTokens({ ...plain, turns: [], system: ['a'.repeat(40), 'b'] }), 19);
});

test('tools count by name, description and schema', async (t) => {
  const tool = { name: 'read', description: 'a'.repeat(40), parameters: { type: 'object' }, strict: null };
  const tokens = (tools: (typeof tool)[]) => estimateTokens({ ...plain, turns: [], tools });
  t.equal(tokens([tool]), 12 + 1 + 10 + 6);
  t.equal(tokens([tool, tool]), 2 * tokens([tool]));
  t.equal(
    estimateTokens({ ...plain, turns: [], tools: [{ ...tool, description: null, parameters: null }] }),
    13,
  );
});

test('calls, their results and reasoning count', async (t) => {
  const call = { kind: 'toolCall', id: 'x', name: 'read', input: '{"a":1}', custom: false, at: '' } as const;
  const content = [{ kind: 'text', text: 'a'.repeat(40) } as const];
  const result = { kind: 'toolResult', callId: 'x', name: '', content, isError: false, at: '' } as const;
  t.equal(ofTurns({ role: 'assistant', parts: [call] }), 4 + 4 + 1 + 3);
  t.equal(ofTurns({ role: 'user', parts: [result] }), 4 + 4 + 10);
  t.equal(ofTurns({ role: 'assistant', parts: [{ kind: 'reasoning', text: 'abcd', signature: 'x' }] }), 5);
});

test('an image counts the same at any size, other media by their size', async (t) => {
  const tokens = (part: MediaPart) => ofTurns({ role: 'user', parts: [part] }) - 4;
  t.equal(tokens(media('image', 30)), 1500);
  t.equal(tokens(media('image', 3_000_000)), 1500);
  t.equal(tokens(media('document', 30)), 1500);
  t.equal(tokens(media('document', 3 * 65_535)), 4500);
  t.equal(
    tokens({ ...media('document', 30), source: { kind: 'url', url: 'https://x', mediaType: null } }),
    1500,
  );
});
