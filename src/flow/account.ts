import { shrinkReservation } from './admit.js';
import type { Call, Outcome } from './call.js';
import type { Services } from './services.js';

/** The last phase of every call, good or bad, exactly once: gives back what it held, settles its limits and reports it. */
export function account(services: Services, call: Call, outcome: Outcome): void {
  if (call.accounted) return;
  call.accounted = true;
  call.outcome = outcome;
  if (call.endedAt === 0) call.endedAt = performance.now();
  shrinkReservation(services, call, 0);
  call.limited?.end(call);
  // What was never handed to an upstream is read by nobody else.
  if (call.target === null && call.body !== null) call.exchange.recycleBody();
  call.body = null;
  call.validated = null;
  services.report(call);
}
