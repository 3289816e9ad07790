import { performance } from 'node:perf_hooks';
import type { Snapshot } from '../../config/types.js';
import { type FaultPlace, GatewayError, guard } from '../../errors.js';
import type { BodyReceiver } from '../../http/body.js';
import { type Decoder, decodeBody, decoderOf } from '../../http/content-coding.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { SweepMember } from '../../http/sweep.js';
import { LeastRate, type RateBound } from '../../upstream/least-rate.js';
import type { AuthenticatedCall } from '../call.js';
import { type AdmissionListener, admit, type Next } from '../limits/admit.js';
import { keepMemory, tryMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';

/** Largest expected ratio of a body to its compressed form. JSON stays well below. */
const usualRatio = 20;
const leastDecodedBytes = 64 * 1024;
/** Decoding a body of this size takes milliseconds. */
export const largeBytes = 1024 * 1024;
/** Least factor by which the limit grows each time a decoded body exceeds it. */
const leastGrowth = 4;

/** A body that has a content coding. */
interface CodedBody {
  readonly decoder: Decoder;
  readonly body: Buffer;
}

/**
 * Reads the body of a call: takes its slot among the calls of its key, reads the bytes while memory allows, and decodes
 * them.
 */
export class Intake extends SweepMember implements BodyReceiver, ExchangeListener, AdmissionListener {
  readonly #services: Services;
  readonly #call: AuthenticatedCall;
  readonly #next: Next<AuthenticatedCall>;
  /** The call waits for its limits. */
  #waits = false;
  /** Waits for a decoder. What belongs to a client that has gone is not kept for its turn. */
  #undecoded: CodedBody | null = null;
  /** Set for a body that does not arrive in one piece. */
  #rate: LeastRate | null = null;

  constructor(services: Services, call: AuthenticatedCall, next: Next<AuthenticatedCall>) {
    super();
    this.#services = services;
    this.#call = call;
    this.#next = next;
  }

  /**
   * Starts reading. Must be called before the handler of the request returns.
   * @param isLimited whether the call counts against the limits of its key
   * @throws {GatewayError} if the call is refused before its body
   */
  start(isLimited: boolean): void {
    const { exchange, running } = this.#call;
    const { contentEncoding } = exchange.head;
    this.#waits = isLimited && !admit(this.#services, this.#call, this);
    if (isCoded(contentEncoding)) decoderOf(contentEncoding);
    exchange.listener = this;
    this.#services.sweepList.add(this);
    exchange.readBody(running.snapshot.limits.bodyBytes, this, this.#waits);
  }

  onAdmitted(): void {
    this.#waits = false;
    this.#call.exchange.resumeBody();
  }

  onNotAdmitted(refusal: GatewayError): void {
    this.#refuse(refusal);
  }

  onBody(body: Buffer): void {
    this.#services.sweepList.remove(this);
    const coding = this.#call.exchange.head.contentEncoding;
    if (!isCoded(coding)) {
      this.#take(body);
      return;
    }
    const { bodyBytes } = this.#call.running.snapshot.limits;
    const decoder = decoderOf(coding);
    const coded = { decoder, body };
    const limit = Math.min(bodyBytes, Math.max(leastDecodedBytes, usualRatio * body.length));
    if (decoder.windowBytes(body) > leastDecodedBytes) this.#decodeLater(coded, limit, false);
    else this.#decode(coded, limit, null);
  }

  hold(bytes: number): boolean {
    const more = bytes - this.#call.heldBytes;
    const refusal = more <= 0 ? null : tryMemory(this.#services, this.#call, more);
    if (refusal !== null) this.#refuse(refusal);
    return refusal === null;
  }

  onBodyRefused(error: GatewayError): void {
    this.#refuse(error);
  }

  onClientGone(): void {
    this.#services.sweepList.remove(this);
    this.#undecoded = null;
    account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {}

  onSweep(now: number): void {
    if (this.#waits) return;
    const { exchange, running, startedAt } = this.#call;
    this.#rate ??= new LeastRate(startedAt);
    const isLate = now - startedAt >= running.snapshot.timeouts.bodyMs;
    const isSlow = this.#rate.isTooSlow(now, exchange.bytesIn, rateBound(running.snapshot));
    if (!isLate && !isSlow) return;
    exchange.closing = true;
    this.#refuse(lateBody(isSlow, running.snapshot));
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
  }

  #refuse(error: GatewayError): void {
    this.#services.sweepList.remove(this);
    refuse(this.#services, this.#call, error);
  }

  /** Decodes when another decoder may be opened. @param isRetry whether the body exceeds the limit */
  #decodeLater(coded: CodedBody, limit: number, isRetry: boolean): void {
    const call = this.#call;
    const { decoding } = this.#services;
    keepMemory(this.#services, call, coded.body.length);
    this.#undecoded = coded;
    const ended = (): void => decoding.next();
    const begin = (): boolean => {
      const undecoded = this.#undecoded;
      this.#undecoded = null;
      if (undecoded === null || call.accounted) return false;
      return this.#decode(undecoded, isRetry ? this.#limitAfter(limit) : limit, ended);
    };
    const isWaiting = decoding.add(call.key.id, guard('request', call, begin, false));
    if (!isWaiting) refuse(this.#services, call, tooManyCoded());
  }

  /** Returns the next limit for a body that exceeds one: as much as may be free, so that few bodies are decoded often. */
  #limitAfter(limit: number): number {
    const { limits } = this.#call.running.snapshot;
    const { memory } = this.#services;
    const ofKey = limits.bufferedBytesPerKey - memory.bytesOf(this.#call.key.id);
    const free = Math.min(ofKey, limits.bufferedBytes - memory.bytes);
    return Math.min(limits.bodyBytes, Math.max(limit * leastGrowth, free >> 1));
  }

  /**
   * Decodes within `limit` bytes, for which memory is taken. A body that needs more is retried with a larger limit.
   * @param ended called when the decoder is closed
   * @returns false if no decoder was opened, as the call is refused
   */
  #decode(coded: CodedBody, limit: number, ended: (() => void) | null): boolean {
    const call = this.#call;
    const { decoder, body } = coded;
    const { bodyBytes } = call.running.snapshot.limits;
    // The decoder's window does not count: the queue bounds those of a worker.
    if (!this.hold(body.length + limit)) return false;
    const done = (result: Buffer | GatewayError): void => {
      if (call.accounted) return;
      if (!(result instanceof GatewayError)) this.#take(result);
      else if (result.kind === 'request_too_large' && limit < bodyBytes)
        this.#decodeLater(coded, limit, true);
      else refuse(this.#services, call, result);
    };
    const guarded = guard('request', call, done);
    decodeBody(decoder, body, limit, (result) => {
      // First the memory of this one is returned, so that there is some for the next.
      guarded(result);
      ended?.();
    });
    return true;
  }

  #take(body: Buffer): void {
    const call = this.#call;
    call.body = body;
    call.bodyAt = performance.now();
    keepMemory(this.#services, call, body.length);
    if (body.length < largeBytes) this.#goOn();
    else this.#services.largeBodies.add(guard('request', call, () => this.#goOn()));
  }

  #goOn(): void {
    const call = this.#call;
    if (call.accounted) return;
    try {
      this.#next(this.#services, call);
    } catch (fault) {
      call.onFault('request', fault);
    }
  }
}

function tooManyCoded(): GatewayError {
  const message =
    'The gateway cannot decode more compressed bodies of your key at the moment: try again shortly.';
  return new GatewayError('overloaded', message, { retryAfter: 1 });
}

/** Whether a body has a content coding. */
export function isCoded(coding: string): boolean {
  return coding !== '' && coding.toLowerCase() !== 'identity';
}

/** Returns the slowest rate at which a body, or a fetched file, may arrive. */
export function rateBound({ limits, timeouts }: Snapshot): RateBound {
  return { bytesPerSecond: limits.leastBodyRate, graceMs: timeouts.bodyGraceMs };
}

/** Returns the error for a request body that was silent for too long, or arrived too slowly. */
export function lateBody(isSlow: boolean, { limits, timeouts }: Snapshot): GatewayError {
  const message = isSlow
    ? `The request body came too slowly: it has to bring ${limits.leastBodyRate} bytes a second, over ` +
      `${timeouts.bodyGraceMs / 1000} s each time.`
    : 'The request body did not arrive in time.';
  return new GatewayError('request_timeout', message);
}
