import type { AssistantPart, ToolResultPart, Turn, UserPart } from '../../../src/conversation/request.js';
import { fc } from '../../support/seed.js';

const ids = ['a', 'b', 'c', ''] as const;

const text = fc.constantFrom(
  { kind: 'text' as const, text: 'x' },
  { kind: 'text' as const, text: '' },
  { kind: 'text' as const, text: 'and\nmore' },
);
const call = fc
  .record({
    id: fc.constantFrom(...ids),
    name: fc.constantFrom('f', 'g'),
    input: fc.constantFrom('{}', '{"a":1}', '{"a', '[1]', 'plain', ''),
  })
  .map((given): AssistantPart => ({ ...given, kind: 'toolCall', custom: false, at: '' }));
const result = fc.record({ callId: fc.constantFrom(...ids), isError: fc.boolean() }).map(
  (given): ToolResultPart => ({
    ...given,
    kind: 'toolResult',
    name: 'f',
    content: [{ kind: 'text', text: '42' }],
    at: '',
  }),
);
const reasoning: AssistantPart = { kind: 'reasoning', text: 'hm', signature: null };

const assistant = fc
  .array(fc.oneof({ weight: 3, arbitrary: call }, text, fc.constant(reasoning)), { maxLength: 4 })
  .map((parts): Turn => ({ role: 'assistant', parts }));
const user = fc
  .tuple(fc.array(result, { maxLength: 3 }), fc.array(text, { maxLength: 2 }))
  .map(([results, texts]): Turn => ({ role: 'user', parts: [...results, ...texts] as UserPart[] }));
const system = fc.constant<Turn>({ role: 'system', text: 's' });

/** Turns in any order, whose calls and results seldom fit each other. */
export const histories = fc.array(
  fc.oneof({ weight: 4, arbitrary: assistant }, { weight: 4, arbitrary: user }, system),
  { maxLength: 8 },
);
