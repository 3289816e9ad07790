import { performance } from 'node:perf_hooks';
import type { Target } from '../config/types.js';
import type { Endpoint } from '../protocols/endpoint.js';
import type { Call } from './call.js';
import { mediaToFetch } from './fetch-media.js';
import { keepMemory, takeMemory } from './memory-budget.js';
import {
  decodeCall,
  hasOtherForm,
  type Prepared,
  prepareNative,
  prepareTranslated,
  writtenBytes,
} from './prepare.js';
import type { Services } from './services.js';

/** Whether a call may go to two targets at once: its body is at hand, and it is known whether its answer is a stream. */
export function mayHedge(
  { body, upload, socketCall, validated, retries }: Call,
  endpoint: Endpoint,
): boolean {
  const isHeld = body !== null && upload === null && socketCall === null;
  return isHeld && retries === 0 && !(validated?.stream && endpoint.streamsUnasked);
}

/**
 * Prepares a call for a second target beside the first.
 * @returns null for what takes more than sending it, or may be sent once only
 * @throws {GatewayError} for what the target's protocol cannot say, and when there is no room for it
 */
export function prepareHedge(
  services: Services,
  call: Call,
  endpoint: Endpoint,
  target: Target,
): Prepared | null {
  if (target.native.has(endpoint.protocol)) {
    if (services.lacking.has(target, endpoint, performance.now())) return null;
    if (hasOtherForm(endpoint, target)) return prepareAnew(services, call, endpoint, target);
    const prepared = prepareNative(services, call, { endpoint, target, key: null });
    // What the first target would not keep, this one might.
    return prepared.once(prepared.body) ? null : prepared;
  }
  const { translation } = endpoint;
  if (translation === null || translation.answerHere !== null) return null;
  const request = decodeCall(call, translation);
  if (mediaToFetch(request, target, translation).length > 0) return null;
  const prepared = prepareTranslated(call, translation, target, request);
  takeMemory(services, call, writtenBytes(prepared));
  return prepared;
}

/** The body in another form is about as long as the one that came, for which room is found before the work. */
function prepareAnew(services: Services, call: Call, endpoint: Endpoint, target: Target): Prepared {
  const before = call.heldBytes;
  takeMemory(services, call, call.body?.length ?? 0);
  try {
    return prepareNative(services, call, { endpoint, target, key: null });
  } catch (fault) {
    keepMemory(services, call, before);
    throw fault;
  }
}
