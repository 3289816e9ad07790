import type { BrokenBy } from '../conversation/estimate-usage.js';
import type { Usage } from '../conversation/usage.js';
import type { GatewayError } from '../errors.js';
import { eventEnd, parseEvent } from '../wire/sse.js';
import type { AnswerTransform, TransformEnd } from './answer-transform.js';

/** An element leaves whole, however large its inline media make it. */
const eventBytes = 32 * 1024 * 1024;

/**
 * Gives out the events of another transform as the elements of one JSON array, each as it came: the form in which
 * generateContent streams without `alt=sse`.
 */
export class ArrayTransform implements AnswerTransform {
  readonly #inner: AnswerTransform;
  #isOpen = false;

  constructor(inner: AnswerTransform) {
    this.#inner = inner;
  }

  get wholeBytes(): number {
    return this.#inner.wholeBytes;
  }

  get eventBytes(): number {
    return Math.max(this.#inner.eventBytes, eventBytes);
  }

  /** An element in pieces is no element yet; an event that large is refused. */
  get divisible(): boolean {
    return false;
  }

  get streamsUnasked(): boolean {
    return this.#inner.streamsUnasked;
  }

  get kept(): number {
    return this.#inner.kept;
  }

  get exactErrors(): boolean {
    return this.#inner.exactErrors;
  }

  get toldError(): GatewayError | null {
    return this.#inner.toldError;
  }

  get withheldError(): GatewayError | null {
    return this.#inner.withheldError;
  }

  get endsItself(): boolean {
    return this.#inner.endsItself;
  }

  get isCut(): boolean {
    return this.#inner.isCut;
  }

  get isComplete(): boolean {
    return this.#inner.isComplete;
  }

  get passedError(): GatewayError | null {
    return this.#inner.passedError;
  }
  /** Nothing of this form is kept. */
  readonly keep = null;
  readonly held = null;

  get usage(): Usage | null {
    return this.#inner.usage;
  }

  get nextNumber(): number {
    return this.#inner.nextNumber;
  }

  get mediaSeconds(): number {
    return this.#inner.mediaSeconds;
  }

  usageAtEnd(brokenBy: BrokenBy): Usage | null {
    return this.#inner.usageAtEnd(brokenBy);
  }

  judge(run: Buffer): 'silence' | 'meaningful' | GatewayError {
    return this.#inner.judge(run);
  }

  pass(run: Buffer): Buffer {
    const events = this.#inner.pass(run);
    let text = '';
    for (let start = 0; start < events.length; ) {
      const end = eventEnd(events, start);
      const { data } = parseEvent(events.toString('utf8', start, end));
      // Some upstreams add the end mark of another protocol, which is no JSON.
      if (data !== null && data !== '[DONE]') text += this.#element(data);
      start = end;
    }
    return Buffer.from(text);
  }

  end(): TransformEnd {
    const { error } = this.#inner.end();
    return { last: error === null ? Buffer.from(this.#isOpen ? '\n]' : '[]') : null, error };
  }

  lastWords(_error: GatewayError, event: string): string {
    return `${this.#element(parseEvent(event).data ?? '')}\n]`;
  }

  note(chunk: Buffer): void {
    this.#inner.note(chunk);
  }

  whole(body: Buffer): Buffer | string {
    return this.#inner.whole(body);
  }

  #element(json: string): string {
    const before = this.#isOpen ? ',\n' : '[';
    this.#isOpen = true;
    return before + json;
  }
}
