import type { UpstreamFailure } from '../upstream/client.js';
import { nextRequestNumber, requestIdOf, requestSeries } from '../wire/request-id.js';
import { type Answered, ask, type CollectedRequest } from './ask.js';
import type { Asking } from './call.js';
import { keepMemory } from './memory-budget.js';
import type { Services } from './services.js';

const noVendorHeaders = { openaiBeta: '', vendorcBeta: '', vendorcVersion: '' };

/** Stands for a call where the gateway itself asks an upstream about what an earlier call has begun. @param model of that call */
export function askingAbout(services: Services, model: string): Asking {
  const { running } = services;
  return {
    running,
    key: null,
    model: running.snapshot.models.get(model) ?? null,
    exchange: { id: requestIdOf(requestSeries, nextRequestNumber()), head: noVendorHeaders },
    error: null,
    accounted: false,
    answeredAt: 0,
    heldBytes: 0,
    gathered: 0,
    onFault: (where, fault) => services.reportFault(where, fault, null),
  };
}

/** Asks an upstream on nobody's behalf. @param cancels has what gives it up, while it is under way: then it never resolves */
export async function askAlone(
  services: Services,
  asking: Asking,
  request: CollectedRequest,
  cancels: Set<() => void>,
): Promise<Answered | UpstreamFailure> {
  let cancel = (): void => {};
  const answer = await new Promise<Answered | UpstreamFailure>((resolve) => {
    cancel = ask(services, asking, request, resolve);
    cancels.add(cancel);
  });
  cancels.delete(cancel);
  keepMemory(services, asking, 0);
  return answer;
}
