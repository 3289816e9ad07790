import { GatewayError } from '../errors.js';
import type { BodyReceiver } from '../http/body.js';
import { decodeBody, decoderOf } from '../http/content-coding.js';
import type { ExchangeListener } from '../http/exchange-host.js';
import { account } from './account.js';
import { reserveBody, shrinkReservation } from './admit.js';
import type { Call } from './call.js';
import { refuse } from './refuse.js';
import type { Services } from './services.js';
import { Watched } from './watch.js';

/** How much larger than its compressed form a body is expected to be at most; JSON stays well below. */
const usualRatio = 20;
const leastDecodedBytes = 64 * 1024;

/** Takes in the body of a call: room for it first, then its bytes, then their decoding. */
export class Intake extends Watched implements BodyReceiver, ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #next: (services: Services, call: Call) => void;

  constructor(services: Services, call: Call, next: (services: Services, call: Call) => void) {
    super();
    this.#services = services;
    this.#call = call;
    this.#next = next;
  }

  /**
   * Begins to read. Must be called before the handler of the request returns.
   * @throws {GatewayError} when the body is refused by its head alone.
   */
  start(): void {
    const { exchange, running } = this.#call;
    const { head } = exchange;
    const limit = running.snapshot.limits.bodyBytes;
    if (isCoded(head.contentEncoding)) decoderOf(head.contentEncoding);
    if (head.contentLength > 0 && head.contentLength <= limit) {
      reserveBody(this.#services, this.#call, head.contentLength);
    }
    exchange.listener = this;
    this.#services.watched.add(this);
    exchange.readBody(limit, this);
  }

  onBody(body: Buffer): void {
    this.#services.watched.remove(this);
    const coding = this.#call.exchange.head.contentEncoding;
    if (!isCoded(coding)) {
      this.#take(body);
      return;
    }
    const { bodyBytes } = this.#call.running.snapshot.limits;
    this.#decode(coding, body, Math.min(bodyBytes, Math.max(leastDecodedBytes, usualRatio * body.length)));
  }

  reserve(bytes: number): boolean {
    const more = bytes - this.#call.reserved;
    if (more <= 0) return true;
    try {
      reserveBody(this.#services, this.#call, more);
      return true;
    } catch (fault) {
      this.#refuse(fault);
      return false;
    }
  }

  onBodyRefused(error: GatewayError): void {
    this.#refuse(error);
  }

  onClientGone(): void {
    this.#services.watched.remove(this);
    account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {}

  onTick(now: number): void {
    const { bodyMs } = this.#call.running.snapshot.timeouts;
    if (now - this.#call.startedAt < bodyMs) return;
    this.#call.exchange.closing = true;
    this.#refuse(new GatewayError('request_timeout', 'The request body did not arrive in time.'));
  }

  #refuse(fault: unknown): void {
    this.#services.watched.remove(this);
    refuse(this.#services, this.#call, fault);
  }

  /** Decodes within `limit` bytes, for which there is room; a body that needs more gets its chance with all of it. */
  #decode(coding: string, body: Buffer, limit: number): void {
    const call = this.#call;
    const { bodyBytes } = call.running.snapshot.limits;
    if (!this.reserve(body.length + limit)) return;
    decodeBody(decoderOf(coding), body, limit, (result) => {
      if (call.accounted) return;
      if (!(result instanceof GatewayError)) this.#take(result);
      else if (result.kind === 'request_too_large' && limit < bodyBytes)
        this.#decode(coding, body, bodyBytes);
      else refuse(this.#services, call, result);
    });
  }

  #take(body: Buffer): void {
    const call = this.#call;
    call.body = body;
    call.bodyAt = performance.now();
    shrinkReservation(this.#services, call, body.length);
    try {
      this.#next(this.#services, call);
    } catch (fault) {
      refuse(this.#services, call, fault);
    }
  }
}

/** True for a body in a content coding. */
export function isCoded(coding: string): boolean {
  return coding !== '' && coding.toLowerCase() !== 'identity';
}
