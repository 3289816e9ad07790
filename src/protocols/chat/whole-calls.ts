import type { StreamEvent } from '../../conversation/events.js';

type CallStart = Extract<StreamEvent, { kind: 'callStart' }>;

/** A call as it is told of first. */
export interface WrittenCall extends CallStart {
  /** What there is of its arguments; nothing unless given. */
  readonly input?: string;
}

/**
 * Clients of vendors that stream each call in one piece, and so take every piece for a call: xAI's and Mistral's (their
 * providers of the AI SDK; `@mistralai/mistralai` with what is built on it).
 */
const names = ['ai-sdk/xai/', 'ai-sdk/mistral/', 'mistralai'];

/** @param userAgent how a client names itself */
export function takesWholeCalls(userAgent = ''): boolean {
  return names.some((name) => userAgent.includes(name));
}

/** Characters of a call that are kept; a longer one goes on in pieces. */
const mostKept = 1024 * 1024;

/** Keeps each call of a stream until it is whole. */
export class WholeCalls {
  #start: CallStart | null = null;
  #input = '';

  /** @returns what is to be written for an event, or null */
  next(event: StreamEvent): StreamEvent | WrittenCall | null {
    if (event.kind === 'callStart') {
      this.#start = event;
      this.#input = '';
      return null;
    }
    if (this.#start === null || (event.kind !== 'callArguments' && event.kind !== 'callEnd')) return event;
    if (event.kind === 'callArguments') this.#input += event.text;
    if (event.kind === 'callArguments' && this.#input.length <= mostKept) return null;
    const call = { ...this.#start, input: this.#input };
    this.#start = null;
    this.#input = '';
    return call;
  }
}
