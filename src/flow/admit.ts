import { GatewayError } from '../errors.js';
import type { Call } from './call.js';
import type { Services } from './services.js';

/** Seconds after which a refused caller may try again. */
const retryAfter = 1;
const smallAnswer = 64 * 1024;

/**
 * Reserves memory for what a call is about to hold: its body as it comes, what is fetched for it, and its answer where
 * that is gathered. What one worker holds stays bounded however many clients send at once, and so does what the calls of
 * one key hold there, so that no key takes the room of all.
 * @throws {GatewayError} `overloaded` when the room is gone, or the key's share of it
 */
export function reserveBody(services: Services, call: Call, bytes: number): void {
  const { bufferedBytes, bufferedBytesPerKey } = call.running.snapshot.limits;
  const keyId = call.key?.id ?? '';
  if (services.keyBytes.of(keyId) + bytes > bufferedBytesPerKey) throw keyOverloaded(bufferedBytesPerKey);
  if (services.bufferedBytes + bytes > bufferedBytes) throw overloaded();
  hold(services, keyId, bytes);
  call.reserved += bytes;
}

/** Gives back what a call needs less of, once its body's real length is known. */
export function shrinkReservation(services: Services, call: Call, bytes: number): void {
  if (call.reserved === bytes) return;
  hold(services, call.key?.id ?? '', bytes - call.reserved);
  call.reserved = bytes;
  if (call.gathered > bytes) call.gathered = bytes;
}

/**
 * Says how much of its upstream's answer a call is about to hold. A small answer counts, and is never refused: the
 * upstream has done its work.
 * @throws {GatewayError} as `reserveBody` does
 */
export function reserveAnswer(services: Services, call: Call, bytes: number): void {
  const more = bytes - call.gathered;
  if (more > 0 && bytes > smallAnswer) reserveBody(services, call, more);
  else shrinkReservation(services, call, call.reserved + more);
  call.gathered = bytes;
}

/** The same for what is in memory already and cannot be refused: a piece of an answer that its client does not take. */
export function holdAnswer(services: Services, call: Call, bytes: number): void {
  const more = bytes - call.gathered;
  shrinkReservation(services, call, call.reserved + more);
  call.gathered = bytes;
}

/**
 * Takes what is reserved from a call, for work that goes on when its client has left.
 * @returns gives it back; to be called once
 */
export function takeReservation(services: Services, call: Call): () => void {
  const { reserved } = call;
  const keyId = call.key?.id ?? '';
  call.reserved = 0;
  call.gathered = 0;
  return () => hold(services, keyId, -reserved);
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
  shrinkReservation(services, call, call.gathered);
}

function hold(services: Services, keyId: string, bytes: number): void {
  services.bufferedBytes += bytes;
  services.keyBytes.add(keyId, bytes);
}

function overloaded(): GatewayError {
  return new GatewayError(
    'overloaded',
    'The gateway holds as many request bodies as it can, try again shortly.',
    { retryAfter },
  );
}

function keyOverloaded(bytes: number): GatewayError {
  return new GatewayError(
    'overloaded',
    `The calls of your key hold as much memory as those of one key may here (${bytes} bytes): let some of them end, ` +
      'and try again.',
    { retryAfter },
  );
}
