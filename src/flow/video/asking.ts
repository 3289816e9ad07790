import type { VideoTask } from '../../video/task.js';
import { nextRequestNumber, requestIdOf, requestSeries } from '../../wire/request-id.js';
import type { Asking } from '../call.js';
import type { Services } from '../services.js';

const noVendorHeaders = { openaiBeta: '', vendorcBeta: '', vendorcVersion: '' };

/** What an upstream is asked with about a task for which no client asks. */
export function askingAbout(services: Services, { model }: VideoTask): Asking {
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
