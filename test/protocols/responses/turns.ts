import type { AssistantPart, MediaPart, Turn, UserPart } from '../../../src/conversation/request.js';
import { carriedReasoning, openReasoning, tagReasoning } from '../../../src/protocols/responses/reasoning.js';
import { fc } from '../../support/seed.js';

/*
 * Conversations as this protocol can tell them apart: each item is a part of its own, the assistant's turns are not
 * adjacent, and its messages hold one part each.
 */

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const text = words.map((value) => ({ kind: 'text' as const, text: value }));
const image = fc.constantFrom('low', 'high', 'auto').map(
  (detail): MediaPart => ({
    kind: 'image',
    source: { kind: 'data', mediaType: 'image/png', data: 'AAAA' },
    detail,
    name: null,
    at: '',
  }),
);
const document = words.map(
  (name): MediaPart => ({
    kind: 'document',
    source: { kind: 'url', url: 'https://example.com/a.pdf', mediaType: null },
    detail: null,
    name,
    at: '',
  }),
);

const userTurn = fc
  .array(fc.oneof(text, image, document), { minLength: 1, maxLength: 3 })
  .map((parts): Turn => ({ role: 'user', parts }));
const systemTurn = words.map((value): Turn => ({ role: 'system', text: value }));
const assistantText = fc.oneof(
  text,
  words.map((value) => ({ kind: 'refusal' as const, text: value })),
);

/** Reasoning that an upstream of the protocol encrypted: sealed here, or carried raw by the client. */
const reasoning = fc
  .record({
    id: fc.oneof(fc.constant(''), fc.stringMatching(/^rs_[a-z0-9]{8}$/)),
    content: fc.stringMatching(/^gA[A-Za-z0-9_=:-]{1,20}$/),
    isRaw: fc.boolean(),
    summary: fc.oneof(fc.constant(''), words),
  })
  .map(({ id, content, isRaw, summary }) => ({
    kind: 'reasoning' as const,
    text: summary,
    signature: isRaw
      ? carriedReasoning({ id, encrypted_content: content })
      : tagReasoning({ id, content }, 'up'),
  }));

/** A turn of the assistant, with the results of its calls. */
const round = fc
  .record({
    thought: fc.array(reasoning, { maxLength: 2 }),
    opening: fc.array(assistantText, { minLength: 1, maxLength: 2 }),
    calls: fc.array(
      fc.record({
        id: fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
        input: fc.json(),
        custom: fc.boolean(),
        thought: fc.option(reasoning),
        content: fc.oneof(fc.tuple(text), fc.tuple(text, image)),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ thought, opening, calls }): Turn[] => {
    const parts: AssistantPart[] = [...thought, ...opening];
    const results: UserPart[] = [];
    calls.forEach(({ id, input, custom, thought: between, content }, index) => {
      const callId = `${index}${id}`.slice(0, 64);
      if (between !== null) parts.push(between);
      parts.push({ kind: 'toolCall', id: callId, name: `f${index}`, input, custom, at: '' });
      results.push({ kind: 'toolResult', callId, name: `f${index}`, content, isError: false, at: '' });
    });
    const turns: Turn[] = [{ role: 'assistant', parts }];
    if (results.length > 0) turns.push({ role: 'user', parts: results });
    return turns;
  });

/**
 * Turns that begin with the user's and have one of the user's after each of the assistant's, with calls and reasoning of
 * an id each.
 */
export const turnsArbitrary: fc.Arbitrary<Turn[]> = fc
  .array(fc.tuple(userTurn, fc.option(systemTurn), fc.option(round)), { minLength: 1, maxLength: 5 })
  .map((rounds) =>
    rounds.flatMap(([user, system, turns]) => [user, ...(system === null ? [] : [system]), ...(turns ?? [])]),
  )
  .filter((turns) => {
    const ids = turns.flatMap(idsOf);
    return new Set(ids).size === ids.length;
  });

function idsOf(turn: Turn): string[] {
  if (turn.role !== 'assistant') return [];
  return turn.parts.flatMap((part) => {
    if (part.kind === 'toolCall') return [part.id];
    const id = part.kind === 'reasoning' ? openReasoning(part.signature, null)?.id : undefined;
    return id === undefined || id === '' ? [] : [id];
  });
}
