import type { ExchangeListener } from '../../http/exchange.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { leftOutLine, ownLines, timingLine } from '../answer/lines.js';
import type { Call } from '../call.js';
import { account } from '../record/account.js';
import type { Services } from '../services.js';
import { type Answered, ask, type CollectedRequest, type EventTaker, type Waiter } from './ask.js';

/** The client's side of a call while something is waited for: the store, an upstream, a file. */
export class WaitingClient implements ExchangeListener, Waiter {
  cancel: () => void = () => {};
  readonly #services: Services;
  readonly #call: Call;

  constructor(services: Services, call: Call) {
    this.#services = services;
    this.#call = call;
    call.exchange.listener = this;
  }

  /**
   * Asks an upstream, which a client that leaves cancels: then nothing comes back.
   * @param events null where no stream is asked for
   * @returns the answer, or why there is none
   * @throws {GatewayError} as `ask` does
   */
  async ask(
    request: CollectedRequest,
    events: EventTaker | null = null,
  ): Promise<Answered | UpstreamFailure> {
    const result = await ask(this.#services, this.#call, request, this, events);
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

/** Runs what answers a call, and refuses the call when it fails. */
export function attend(
  services: Services,
  call: Call,
  work: (waiting: WaitingClient) => Promise<void>,
): void {
  const waiting = new WaitingClient(services, call);
  work(waiting).catch((fault: unknown) => call.onFault('promise', fault));
}

/** Answers a call with a JSON text of the gateway's own, unless its client has left: whoever hears of that accounts. */
export function answerJson(services: Services, call: Call, status: number, json: string): void {
  if (call.accounted || !call.exchange.alive) return;
  if (call.exchange.respond(status, ownLines(call) + leftOutLine(call) + timingLine(call), json))
    account(services, call, 'complete');
}
