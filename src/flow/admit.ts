import { GatewayError } from '../errors.js';
import type { Call } from './call.js';
import type { Services } from './services.js';

/** Seconds after which a refused caller may try again. */
const retryAfter = 1;

/**
 * Reserves room for a request body before any of it is kept, so that what one worker holds stays bounded however
 * many clients send at once.
 * @param bytes announced length, or the limit of a body of unknown length
 * @throws {GatewayError} `overloaded` when the room is gone.
 */
export function reserveBody(services: Services, call: Call, bytes: number): void {
  if (services.bufferedBytes + bytes > call.running.snapshot.limits.bufferedBytes) {
    throw new GatewayError(
      'overloaded',
      'The gateway holds as many request bodies as it can, try again shortly.',
      {
        retryAfter,
      },
    );
  }
  services.bufferedBytes += bytes;
  call.reserved += bytes;
}

/** Gives back what a call needs less of, once its body's real length is known. */
export function shrinkReservation(services: Services, call: Call, bytes: number): void {
  services.bufferedBytes -= call.reserved - bytes;
  call.reserved = bytes;
}

/**
 * Lets go of the request body once it cannot be needed again. An attempt that was given up may still hold it, so its
 * buffer goes back to the pool only after a call that needed one attempt.
 * @param sent no part of the request will be read from its buffers again
 */
export function releaseBody(services: Services, call: Call, sent: boolean): void {
  if (call.body === null) return;
  if (sent && call.retries === 0) call.exchange.recycleBody();
  call.body = null;
  call.validated = null;
  shrinkReservation(services, call, 0);
}
