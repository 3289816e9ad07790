import { GatewayError, guard } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { AuthenticatedCall, Call, SessionCall } from '../call.js';
import { account } from '../record/account.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';

/** Bounds of a refusal's delay in milliseconds. */
const lateMs = { least: 500, most: 1500 };

/**
 * Takes a slot for the session that a call requests, and continues with `next`. If the key is at its bound, the refusal
 * is delayed by a random time. Otherwise a client that retries immediately over many connections would take the
 * worker's time from the calls of other keys.
 * @throws {GatewayError} as `SessionList.takeSlot` does if the refusal may not be delayed, and whatever `next` throws
 */
export function takeSlot<Of extends AuthenticatedCall>(
  services: Services,
  call: Of,
  next: (services: Services, call: Of & SessionCall) => void,
): void {
  const { sessions } = services;
  const holder: Call = call;
  try {
    holder.slot = sessions.takeSlot(call.key.id);
  } catch (fault) {
    const isOfClientKey = fault instanceof GatewayError && fault.kind === 'rate_limit_exceeded';
    if (!isOfClientKey || !sessions.beginLate()) throw fault;
    call.limits?.freeBudgets();
    call.exchange.listener = new LateRefusal(services, call, fault);
    return;
  }
  next(services, call as Of & SessionCall);
}

class LateRefusal implements ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #timer: NodeJS.Timeout;

  constructor(services: Services, call: Call, error: GatewayError) {
    this.#services = services;
    this.#call = call;
    const refuseNow = (): void => {
      this.#end();
      if (!call.accounted) refuse(services, call, error);
    };
    const wait = lateMs.least + Math.random() * (lateMs.most - lateMs.least);
    this.#timer = setTimeout(guard('timer', call, refuseNow), wait);
  }

  onClientGone(): void {
    clearTimeout(this.#timer);
    this.#end();
    account(this.#services, this.#call, 'client_gone');
  }

  /** No-op: nothing is written before the refusal. */
  onDrained(): void {}

  #end(): void {
    this.#call.exchange.listener = null;
    this.#services.sessions.endLate();
  }
}
