import { type HeadLines, headerLine, joinLines, noLines } from './head.js';

/*
 * Detection of calls that return to a gateway which they have passed (RFC 8586): each gateway adds itself to the
 * `cdn-loop` header of its requests to upstreams.
 */

export const loopHeader = 'cdn-loop';
const ownName = 'model-gateway';

/**
 * Most gateways that a call may have passed before. It is a number rather than the identity of a gateway: the hosts of
 * one fleet would each have their own, and an upstream may be the gateway itself under another model's name.
 */
export const mostGateways = 4;

/** The line by which this gateway adds itself. */
export const loopLine: HeadLines = headerLine(loopHeader, ownName);

/**
 * Returns how many gateways a `cdn-loop` value names. Entries of CDNs in front of the gateway are not counted, and not
 * passed on, since the same CDN may stand in front of the upstream and would take the call for one that returned.
 */
export function gatewaysIn(value: string): number {
  let count = 0;
  for (const entry of value.split(',')) if (entry.split(';', 1)[0]?.trim() === ownName) count++;
  return count;
}

/** Returns the lines that say again which gateways a call has passed. */
export function passedGateways(count: number): HeadLines {
  let lines = noLines;
  for (let i = 0; i < Math.min(count, mostGateways); i++) lines = joinLines(lines, loopLine);
  return lines;
}
