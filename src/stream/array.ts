import type { GatewayError } from '../errors.js';
import { eventEnd, parseEvent } from '../wire/sse.js';
import type { TransformEnd } from './answer-transform.js';
import { ObservedTransform } from './observe.js';

/**
 * Returns the events of an answer as the elements of one JSON array, each untouched: the form in which generateContent streams
 * without `alt=sse`.
 */
export class ArrayTransform extends ObservedTransform {
  /** An element is sent whole, even with large inline media. */
  override readonly eventBytes = 32 * 1024 * 1024;
  /** A larger event is refused, since an incomplete element cannot be sent. */
  override readonly divisible = false;
  #isOpen = false;

  override pass(run: Buffer): Buffer {
    const events = super.pass(run);
    let text = '';
    for (let start = 0; start < events.length; ) {
      const end = eventEnd(events, start);
      const { data } = parseEvent(events.toString('utf8', start, end));
      // Some upstreams add the end mark of another protocol, which is not JSON.
      if (data !== null && data !== '[DONE]') text += this.#element(data);
      start = end;
    }
    return Buffer.from(text);
  }

  override end(): TransformEnd {
    const { error } = super.end();
    return { last: error === null ? Buffer.from(this.#isOpen ? '\n]' : '[]') : null, error };
  }

  override lastWords(_error: GatewayError, event: string): string {
    return `${this.#element(parseEvent(event).data ?? '')}\n]`;
  }

  #element(json: string): string {
    const before = this.#isOpen ? ',\n' : '[';
    this.#isOpen = true;
    return before + json;
  }
}
