import { performance } from 'node:perf_hooks';
import type { ExchangeListener } from '../../http/exchange.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { leftOutLine, ownLines, pathLine, timingLine } from '../answer/lines.js';
import type { Call } from '../call.js';
import { account } from '../record/account.js';
import type { Services } from '../services.js';
import {
  type Cancellable,
  type CollectedAnswer,
  type CollectedRequest,
  collectAnswer,
  type EventTaker,
} from './collect.js';

/** The client's side of a call that waits for the store, an upstream or a file. */
export class WaitingClient implements ExchangeListener, Cancellable {
  cancel: () => void = () => {};
  readonly #services: Services;
  readonly #call: Call;

  constructor(services: Services, call: Call) {
    this.#services = services;
    this.#call = call;
    call.exchange.listener = this;
  }

  /**
   * Sends a request to an upstream. It is cancelled if the client disconnects, and the promise then never settles.
   * @param events null if no stream is requested
   * @returns the answer, or why there is none
   * @throws {GatewayError} as `collectAnswer` does
   */
  async collect(
    request: CollectedRequest,
    events: EventTaker | null = null,
  ): Promise<CollectedAnswer | UpstreamFailure> {
    // A call without a body has nothing to validate. From its first request on, it waits for others.
    if (this.#call.validatedAt === 0) this.#call.validatedAt = performance.now();
    const result = await collectAnswer(this.#services, this.#call, request, this, events);
    this.cancel = () => {};
    return result;
  }

  onClientGone(): void {
    this.cancel();
    account(this.#services, this.#call, 'client_gone');
  }

  onDrained(): void {
    account(this.#services, this.#call, 'complete');
  }
}

/** Runs a function that answers a call, and refuses the call if it fails. */
export function answerAsync(
  services: Services,
  call: Call,
  work: (waiting: WaitingClient) => Promise<void>,
): void {
  const waiting = new WaitingClient(services, call);
  work(waiting).catch((fault: unknown) => call.onFault('promise', fault));
}

/**
 * Answers a call with JSON that the gateway makes, unless its client has disconnected: the handler of that event accounts
 * for the call.
 */
export function answerJson(services: Services, call: Call, status: number, json: string): void {
  if (call.accounted || !call.exchange.alive) return;
  const lines = pathLine(call) + ownLines(call) + leftOutLine(call) + timingLine(call);
  if (call.exchange.respond(status, lines, json)) account(services, call, 'complete');
}
