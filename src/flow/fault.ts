import { type FaultPlace, GatewayError } from '../errors.js';
import type { ExchangeListener } from '../http/exchange.js';
import { account } from './account.js';
import type { Call } from './call.js';
import { outcomeOf, refuse } from './refuse.js';
import type { Services } from './services.js';

/**
 * Ends a call in whose course something was thrown: a refusal of any phase, which is a `GatewayError`, or a fault of ours.
 * Its client is told in its own protocol, what it waits for is cancelled, and what it holds is given back. Never throws: a
 * step that fails in turn is noted, and the others follow.
 * @param fault a `GatewayError` is told as it is, and is not reported as a fault
 */
export function endFaulted(services: Services, call: Call, where: FaultPlace, fault: unknown): void {
  const { exchange } = call;
  const { listener } = exchange;
  if (!(fault instanceof GatewayError)) services.reportFault(where, fault, call);
  if (call.accounted && !exchange.alive) return;
  const error =
    fault instanceof GatewayError ? fault : new GatewayError('internal_error', null, { cause: fault });
  const succeeds = (step: () => void): boolean => {
    try {
      step();
      return true;
    } catch (second) {
      services.reportFault(where, second, call);
      return false;
    }
  };
  call.error = error;
  const isTold = succeeds(() => tell(services, call, listener, error));
  if (!isTold) succeeds(() => exchange.abort());
  succeeds(() => account(services, call, outcomeOf(error)));
  // As if its client had left, which it has not by its record: whatever was begun for the call ends.
  succeeds(() => listener?.onClientGone());
}

function tell(services: Services, call: Call, listener: ExchangeListener | null, error: GatewayError): void {
  const { exchange } = call;
  if (listener?.onOurFault !== undefined) listener.onOurFault(error);
  else if (!exchange.isAnswered) refuse(services, call, error);
  else exchange.abort();
}
