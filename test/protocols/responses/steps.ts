import type { FinishReason, StreamEvent } from '../../../src/conversation/answer.js';
import type { AnswerContext } from '../../../src/conversation/codec.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import { parseEvent } from '../../../src/wire/sse.js';
import { context } from './conversation.js';

/** An event as it was sent. */
export type Sent = Readonly<Record<string, unknown>> & { readonly type: string };

export const start = { kind: 'start', usage: null } as const;
export const end = { kind: 'end' } as const;
export const textStep = (text: string) => ({ kind: 'text', choice: 0, text }) as const;
export const finish = (reason: FinishReason) =>
  ({ kind: 'finish', choice: 0, reason, stopSequence: null }) as const;
export const usage = {
  kind: 'usage',
  usage: { input: 5, output: 2, cached: 3, cacheWritten: 1, reasoning: 1 },
} as const;
export const usageObject = {
  input_tokens: 5,
  input_tokens_details: { cached_tokens: 3, cache_write_tokens: 1 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 7,
};

/** A text, and the call of a function. */
export const answerSteps: readonly StreamEvent[] = [start, textStep('hi'), finish('stop'), usage, end];
export const callSteps: readonly StreamEvent[] = [
  { kind: 'callStart', choice: 0, call: 0, id: 'call_7', name: 'f', custom: false },
  { kind: 'callArguments', choice: 0, call: 0, text: '{"a"' },
  { kind: 'callArguments', choice: 0, call: 0, text: ':1}' },
  { kind: 'callEnd', choice: 0, call: 0 },
];

/** The text of a stream with these steps. */
export function encodeText(steps: readonly StreamEvent[], of: AnswerContext = context): string {
  const encoder = responsesCodec.createEncoder(of);
  return steps.map((step) => encoder.encode(step)).join('');
}

/** The events of a stream with these steps. Each must be named after its type. */
export function encodeAll(steps: readonly StreamEvent[], of: AnswerContext = context): Sent[] {
  const blocks = encodeText(steps, of).split('\n\n');
  if (blocks.pop() !== '') throw new Error('The last event does not end.');
  return blocks.map((block) => {
    const { event, data } = parseEvent(`${block}\n\n`);
    const sent = JSON.parse(data ?? '') as Sent;
    if (event !== sent.type) throw new Error(`An event of type ${sent.type} is named ${event}.`);
    return sent;
  });
}
