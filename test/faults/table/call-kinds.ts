import type { Test } from 'tap';
import { exchange, type RawAnswer } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';

/** The kinds of calls: in the upstream's own protocol, with untouched answers, or in a translated one. */
export const callKinds = ['chat', 'messages', 'chat streamed', 'messages streamed'] as const;

export type CallKind = (typeof callKinds)[number];

export const streamedCalls: readonly CallKind[] = ['chat streamed', 'messages streamed'];
export const plainCalls: readonly CallKind[] = ['chat', 'messages'];

export const protocolOf = (kind: CallKind) => (kind.startsWith('chat') ? 'chat' : 'messages');

/** An error in both formats. */
export interface Told {
  readonly status: number;
  /** `error.code` in the chat format. */
  readonly code: string | null;
  /** `error.type` in the messages format. */
  readonly type: string;
  /** Value of `retry-after`; null without one. */
  readonly retryAfter?: string | null;
}

/** Sends one call for the model `m` and reads its answer, or the part of it that arrives. */
export function ask(port: number, kind: CallKind): Promise<RawAnswer> {
  const messages = [{ role: 'user', content: 'hi' }];
  const body = { model: 'm', messages, ...(streamedCalls.includes(kind) ? { stream: true } : {}) };
  return protocolOf(kind) === 'chat'
    ? exchange(port, postBytes('/v1/chat/completions', body))
    : exchange(port, postBytes('/v1/messages', { ...body, max_tokens: 50 }));
}

/** Checks that an answer is good and whole. */
export function checkGood(t: Test, kind: CallKind, { status, body }: RawAnswer): void {
  t.equal(status, 200, `${kind}: ${body}`);
  switch (kind) {
    case 'chat':
      t.match(JSON.parse(body), { choices: [{ message: { content: 'hi' } }] });
      break;
    case 'messages':
      t.match(JSON.parse(body), { type: 'message', content: [{ text: 'hi' }] });
      break;
    case 'chat streamed':
      t.match(body, /"content":"hi"/);
      t.match(body, /data: \[DONE\]\n\n$/);
      break;
    case 'messages streamed':
      t.match(body, /"text":"hi"/);
      t.match(body, /event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/);
  }
}

/** Checks that an answer is this error with its own status, in the caller's error format. */
export function checkTold(t: Test, kind: CallKind, told: Told, { status, head, body }: RawAnswer): void {
  t.equal(status, told.status, `${kind}: ${body}`);
  t.match(head, /\r\ncontent-type: application\/json/);
  t.equal(/\r\nretry-after: (.*)/.exec(head)?.[1] ?? null, told.retryAfter ?? null);
  checkError(t, kind, told, JSON.parse(body));
}

/** Checks that a stream has begun well and ends with this error as its format's last event. */
export function checkBroken(t: Test, kind: CallKind, told: Told, { status, body }: RawAnswer): void {
  t.equal(status, 200, `${kind}: ${body}`);
  t.match(body, /"(content|text)":"hi"/);
  t.notMatch(body, /\[DONE\]|message_stop/);
  const last = body.slice(body.lastIndexOf('\n\n', body.length - 3) + 2);
  const start = protocolOf(kind) === 'chat' ? 'data: ' : 'event: error\ndata: ';
  if (!t.ok(last.startsWith(start) && last.endsWith('\n\n'), last)) return;
  checkError(t, kind, told, JSON.parse(last.slice(start.length)));
}

function checkError(t: Test, kind: CallKind, told: Told, body: unknown): void {
  const { code, type } = told;
  t.match(body, protocolOf(kind) === 'chat' ? { error: { code } } : { type: 'error', error: { type } });
}
