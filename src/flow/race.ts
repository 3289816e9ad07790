import type { Target } from '../config/types.js';
import type { Endpoint } from '../protocols/protocol.js';
import type { Passage } from '../stream/passage.js';
import type { UpstreamExchange } from '../upstream/client.js';
import { reserveBody } from './admit.js';
import type { Attempt } from './attempt.js';
import type { Call, GatewayPath } from './call.js';
import { remoteMedia } from './fetch-media.js';
import { decodeCall, type Prepared, prepareNative, prepareTranslated } from './prepare.js';
import type { Services } from './services.js';

/** An attempt, and what the call takes over from the one that answers it. */
export interface Runner {
  readonly attempt: Attempt;
  readonly passage: Passage;
  readonly path: GatewayPath;
}

/**
 * A call whose first attempt has not answered in time is sent to a second target as well (a hedge), and whoever answers
 * it first has it. Until then it stands for both toward the client's side.
 */
export class Race implements UpstreamExchange {
  readonly #first: Runner;
  readonly #timer: NodeJS.Timeout;
  #second: Runner | null = null;

  /**
   * @param ms milliseconds until `hedge` is called, which begins the second attempt, or gives null
   */
  constructor(first: Runner, ms: number, hedge: () => Runner | null) {
    this.#first = first;
    this.#timer = setTimeout(() => {
      this.#second = hedge();
    }, ms);
  }

  get sentAt(): number {
    return this.#first.attempt.sentAt;
  }

  get bodyReleased(): boolean {
    return this.#first.attempt.bodyReleased;
  }

  /** Nothing is read of either yet. */
  resume(): void {}

  cancel(): void {
    clearTimeout(this.#timer);
    this.#first.attempt.cancel();
    this.#second?.attempt.cancel();
  }

  /** Ends the race: an attempt has failed. @returns the other one, which goes on, or null where there is none */
  without(attempt: Attempt): Runner | null {
    clearTimeout(this.#timer);
    return this.#isFirst(attempt) ? this.#second : this.#first;
  }

  /** Ends the race: an attempt answers well, and the other one is given up. @returns the winner */
  wonBy(attempt: Attempt): Runner {
    const loser = this.without(attempt);
    loser?.attempt.leave();
    loser?.attempt.cancel();
    return this.#isFirst(attempt) ? this.#first : (this.#second as Runner);
  }

  #isFirst(attempt: Attempt): boolean {
    return attempt === this.#first.attempt;
  }
}

/** Whether a call may go to two targets at once: its body is at hand, and its answer no stream. */
export function mayRace({ model, body, upload, turn, validated, retries }: Call): boolean {
  const isHeld = body !== null && upload === null && turn === null;
  return isHeld && model?.hedgeMs != null && retries === 0 && validated?.stream === false;
}

/**
 * Prepares a call for a second target beside the first.
 * @returns null for what takes more than sending it
 * @throws {GatewayError} for what the target's protocol cannot say, and when there is no room for it
 */
export function prepareHedge(
  services: Services,
  call: Call,
  endpoint: Endpoint,
  target: Target,
): Prepared | null {
  if (target.native.has(endpoint.protocol)) return prepareNative(call, endpoint, target);
  const { translation } = endpoint;
  if (translation === null || translation.answerHere !== null) return null;
  const request = decodeCall(call, translation);
  if (target.wire === 'generateContent' && remoteMedia(request.turns).length > 0) return null;
  const prepared = prepareTranslated(call, translation, target, request);
  let bytes = 0;
  for (const piece of prepared.body) bytes += piece.length;
  reserveBody(services, call, bytes);
  return prepared;
}
