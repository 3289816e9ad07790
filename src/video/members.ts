import { GatewayError } from '../errors.js';
import type { CompiledSchema } from '../schema/compile.js';
import { isObject, type JsonObject } from '../wire/json.js';
import { wrongValue } from '../wire/reading.js';

/*
 * How the members of bodies that ask for videos are read.
 */

/** A member with its path in the client's body. */
export interface Member {
  readonly value: unknown;
  readonly at: string;
}

/**
 * Looks for a member that some vendors have and others have not: at the top of the body, else in its `metadata`,
 * which is where the generic format puts them.
 * @returns null for one that is absent, null, or an empty text
 */
export function memberOf(body: JsonObject, name: string): Member | null {
  if (isGiven(body, name)) return { value: body[name], at: name };
  const { metadata } = body;
  if (!isObject(metadata) || !isGiven(metadata, name)) return null;
  return { value: metadata[name], at: `metadata.${name}` };
}

/** Path of the first of these members that the body has; the first name where it has none. */
export function placeOf(body: JsonObject, names: readonly [string, ...string[]]): string {
  for (const name of names) {
    const member = memberOf(body, name);
    if (member !== null) return member.at;
  }
  return names[0];
}

/** @throws {GatewayError} of status 400 naming the first member that is not of the schema */
export function requireBody(schema: CompiledSchema, body: JsonObject): void {
  if (!schema.check(body)) throw schema.explain(body);
}

/** The 400 for a member that must be there. */
export function missingMember(at: string, wanted: string): GatewayError {
  return new GatewayError('missing_parameter', `Missing required parameter '${at}': expected ${wanted}.`, {
    param: at,
  });
}

const wholeText = /^\d{1,9}(?:\.0{1,9})?$/;

/**
 * Reads a length in seconds, written as 5, 5.0 or "5".
 * @param at path in the client's body
 * @returns null where there is none
 * @throws {GatewayError} of status 400 for what is no whole number above zero
 */
export function readDuration(value: unknown, at: string): number | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'number' ? String(value) : value;
  const seconds = typeof text === 'string' && wholeText.test(text) ? Number(text) : 0;
  if (seconds > 0) return seconds;
  throw wrongValue(at, 'a whole number of seconds above zero, such as 5 or "5"');
}

function isGiven(body: JsonObject, name: string): boolean {
  if (!Object.hasOwn(body, name)) return false;
  const value = body[name];
  return value !== undefined && value !== null && value !== '';
}

/** The vendorj format counts the length of a video in frames: 24 a second and the first one, 121 for five seconds. */
export const framesPerSecond = 24;

/** The frames of a video of so many seconds. */
export function framesOf(seconds: number): number {
  return framesPerSecond * seconds + 1;
}
