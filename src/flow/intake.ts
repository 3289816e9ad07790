import { GatewayError } from '../errors.js';
import type { BodyReceiver } from '../http/body.js';
import { decodeBody, decoderOf } from '../http/content-coding.js';
import type { ExchangeListener } from '../http/exchange.js';
import { account } from './account.js';
import { reserveBody, shrinkReservation } from './admit.js';
import type { Call } from './call.js';
import { refuse } from './refuse.js';
import type { Services, Watched } from './services.js';

/** A body of unknown length reserves this much; what it grows beyond is bounded by the body limit. */
const unknownBytes = 64 * 1024;

/** Takes in the body of a call: room for it first, then its bytes, then their decoding. */
export class Intake implements BodyReceiver, ExchangeListener, Watched {
  readonly #services: Services;
  readonly #call: Call;
  readonly #next: (services: Services, call: Call) => void;

  constructor(services: Services, call: Call, next: (services: Services, call: Call) => void) {
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
    if (head.contentEncoding !== '' && head.contentEncoding !== 'identity') decoderOf(head.contentEncoding);
    if (head.contentLength <= limit)
      reserveBody(this.#services, this.#call, head.contentLength === -1 ? unknownBytes : head.contentLength);
    exchange.listener = this;
    this.#services.watched.add(this);
    exchange.readBody(limit, this);
  }

  onBody(body: Buffer): void {
    const call = this.#call;
    this.#services.watched.delete(this);
    const coding = call.exchange.head.contentEncoding;
    if (coding === '' || coding === 'identity') {
      this.#take(body);
      return;
    }
    decodeBody(decoderOf(coding), body, call.running.snapshot.limits.bodyBytes, (result) => {
      if (call.accounted) return;
      if (result instanceof GatewayError) refuse(this.#services, call, result);
      else this.#take(result);
    });
  }

  onBodyRefused(error: GatewayError): void {
    this.#services.watched.delete(this);
    refuse(this.#services, this.#call, error);
  }

  onClientGone(): void {
    this.#services.watched.delete(this);
    account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {}

  onTick(now: number): void {
    const { bodyMs } = this.#call.running.snapshot.timeouts;
    if (now - this.#call.startedAt < bodyMs) return;
    this.#services.watched.delete(this);
    this.#call.exchange.closing = true;
    refuse(
      this.#services,
      this.#call,
      new GatewayError('request_timeout', 'The request body did not arrive in time.'),
    );
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
