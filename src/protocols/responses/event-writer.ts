import type { FinishReason } from '../../conversation/answer.js';
import type { AnswerContext } from '../../conversation/codec.js';
import type { Usage } from '../../conversation/usage.js';
import type { GatewayError } from '../../errors.js';
import { responsesErrorEvent } from '../error-formats/formats.js';
import { encodeFinish } from './answer/finish.js';
import { frameResponse, type ResponseFrame, responseText } from './response.js';

/** Numbers the events of a stream, and keeps the items that the last event repeats. */
export class EventWriter {
  readonly #frame: ResponseFrame;
  #sequence = 0;
  #started = false;
  #output = '';
  #items = 0;

  constructor(context: AnswerContext) {
    this.#frame = frameResponse(context);
  }

  /** Number of the open item or, if none is open, of the next one. */
  get index(): number {
    return this.#items;
  }

  /** Returns the number of the next event, which the caller writes. */
  number(): number {
    return this.#sequence++;
  }

  /** @param members JSON text of the event's own members, each with a comma before it */
  event(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++}${members}}\n\n`;
  }

  /** Returns the events that begin a stream; empty if it has begun. */
  start(): string {
    if (this.#started) return '';
    this.#started = true;
    const response = `,"response":${responseText(this.#frame, { status: 'in_progress', output: '' })}`;
    return this.event('response.created', response) + this.event('response.in_progress', response);
  }

  added(item: string): string {
    return this.event('response.output_item.added', `,"output_index":${this.#items},"item":${item}`);
  }

  /** Ends the open item. */
  done(item: string): string {
    const text = this.event('response.output_item.done', `,"output_index":${this.#items},"item":${item}`);
    this.#output += this.#items === 0 ? item : `,${item}`;
    this.#items++;
    return text;
  }

  /** Returns the last event. */
  end(reason: FinishReason, usage: Usage | null): string {
    const state = { ...encodeFinish(reason), output: this.#output, usage };
    return this.event(`response.${state.status}`, `,"response":${responseText(this.#frame, state)}`);
  }

  /** Returns the last events of a failed stream. Some versions of the SDKs do not raise the first of them. */
  fail(error: GatewayError, usage: Usage | null): string {
    if (!this.#started) return responsesErrorEvent(error, this.#sequence++);
    const state = { status: 'failed', error, output: this.#output, usage } as const;
    const failed = this.event('response.failed', `,"response":${responseText(this.#frame, state)}`);
    return failed + responsesErrorEvent(error, this.#sequence++);
  }
}
