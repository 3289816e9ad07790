import { addWhole, readStream } from './answer-readers.js';
import { begin, type PlaygroundCall, readText } from './call.js';
import { type Choice, requestOf } from './choice.js';
import type { Turn } from './conversation.js';
import { logEvent } from './event-log.js';
import { hasBegun, type TextAnswer } from './text-answer.js';

/** The inputs of a chat call. */
interface Chat {
  readonly choice: Extract<Choice, { kind: 'chat' }>;
  readonly prompt: string;
  readonly turns: readonly Turn[];
  /** Filled while the answer arrives, so that it is available when the call is stopped. */
  readonly answer: TextAnswer;
}

/** Sends a chat, and shows its answer as it arrives. */
export async function runChat(call: PlaygroundCall, chat: Chat): Promise<void> {
  const { choice, prompt, turns, answer } = chat;
  const head = await begin(call, requestOf(choice, prompt, turns));
  const isStream = head.headers['content-type']?.startsWith('text/event-stream') ?? false;
  if (head.status >= 400 || !isStream || head.body.body === null) {
    const text = await readText(call, head, '');
    if (text === null) return;
    if (!addWhole(choice.protocol, answer, text)) call.exchange.showProblem('The answer is no JSON.');
    note(call, answer);
    return;
  }
  await readStream(choice.protocol, answer, head.body.body, ({ event, data }) => {
    const atMs = performance.now() - call.sentAt;
    logEvent(call.record.log, { atMs, name: event === 'message' ? '' : event, data });
    note(call, answer);
  });
}

function note(call: PlaygroundCall, answer: TextAnswer): void {
  const { record } = call;
  if (record.firstTextMs === null && hasBegun(answer)) record.firstTextMs = performance.now() - call.sentAt;
  record.tokens = answer.tokens;
  record.finish = answer.finish;
  call.onChange();
}
