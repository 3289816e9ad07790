import type { GatewayError } from '../../errors.js';
import { openaiError } from '../error-formats/openai.js';
import { accountFailureOf } from '../error-formats/own-account.js';

/**
 * The server event that tells a client of an error of the gateway's own.
 * @param id unique within the session
 */
export function errorEvent(error: GatewayError, id: string): string {
  const members = openaiError(error).slice(0, -1);
  return `{"type":"error","event_id":"event_${id}","error":${members},"event_id":null}}`;
}

/** An event's type stands in its first bytes. */
const typeWithin = 256;
const errorKey = Buffer.from('"error"');
/** Of the events that may hold an error without being one. */
const failures = [Buffer.from('"response.done"'), Buffer.from('.failed"')];
const longest = 64 * 1024;

/** @returns what an upstream's event says of the gateway's account there, or null for any other event */
export function accountFailureIn(event: Buffer): GatewayError | null {
  if (event.length > longest) return null;
  const begin = event.length > typeWithin ? event.subarray(0, typeWithin) : event;
  const mayBe = begin.includes(errorKey) || failures.some((type) => begin.includes(type));
  return mayBe && event.includes(errorKey) ? accountFailureOf(event.toString('utf8')) : null;
}
