import type { UpstreamExchange } from '../upstream/client.js';

/** A wait before an upstream is asked, in the place of the request that follows it: whoever cancels that ends it. */
export class Pause implements UpstreamExchange {
  readonly sentAt = 0;
  readonly bodyReleased = false;
  readonly #timer: NodeJS.Timeout;

  /** @param ms milliseconds until `then` is called, unless it is cancelled before */
  constructor(ms: number, then: () => void) {
    this.#timer = setTimeout(then, ms);
  }

  resume(): void {}

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
