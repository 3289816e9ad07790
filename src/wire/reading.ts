import { type ErrorKind, GatewayError } from '../errors.js';
import { type JsonObject, numberOrNull, textOrNull } from './json.js';

/*
 * Helpers with which the decoders of client bodies read members whose types the schemas leave open.
 */

const longestName = 64;
/** Characters above this have two code units. */
const lastOfOneUnit = 0xffff;

/** Returns a type, role or other word from outside, of any type and length, for use in a message. */
export function nameOfType(word: unknown): string {
  const name = textOrNull(word) ?? 'unknown';
  if (name.length <= longestName) return name;
  const isSplit = (name.codePointAt(longestName - 1) ?? 0) > lastOfOneUnit;
  return name.slice(0, isSplit ? longestName - 1 : longestName);
}

/** Creates an error about a member of a client's body or query. @param at path of the member */
export function memberError(kind: ErrorKind, at: string, message: string): GatewayError {
  return new GatewayError(kind, message, { param: at });
}

/** Creates the error of status 400 for a missing member. @param at path in the client's body, here and below */
export function missingValue(at: string, wanted: string): GatewayError {
  return memberError('missing_parameter', at, `Missing required parameter '${at}': expected ${wanted}.`);
}

/** Creates the error of status 400 for a value of the wrong type. */
export function wrongType(at: string, wanted: string): GatewayError {
  return memberError('invalid_request', at, `Invalid type for '${at}': expected ${wanted}.`);
}

/** Creates the error of status 400 for a value that the schema allows and that has no meaning. */
export function wrongValue(at: string, wanted: string): GatewayError {
  return invalidValue(at, `expected ${wanted}`);
}

/** Does the same with a reason of its own. @param why a clause */
export function invalidValue(at: string, why: string): GatewayError {
  return memberError('invalid_value', at, `Invalid value for '${at}': ${why}.`);
}

/** Creates the error of status 400 for a form field that was sent as a file. */
export function noFile(name: string): GatewayError {
  return memberError(
    'invalid_request',
    name,
    `'${name}' is not taken as a file here: send its value without a filename.`,
  );
}

/**
 * Returns the `name` of a tool or of a tool call.
 * @param at path of the object in the client's body
 * @throws {GatewayError} of status 400 for anything but a non-empty string
 */
export function requireName({ name }: JsonObject, at: string): string {
  if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
  return name;
}

/** Reads stop sequences, one or a list. Empty ones and those that are not strings are ignored. */
export function decodeStop(stop: unknown): string[] {
  const sequences: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return sequences.filter((sequence): sequence is string => typeof sequence === 'string' && sequence !== '');
}

/** Rounds a number to the nearest integer. Returns null for anything else, or if a double cannot hold it exactly. */
export function wholeOrNull(value: unknown): number | null {
  const whole = Math.round(numberOrNull(value) ?? Number.NaN);
  return Number.isSafeInteger(whole) ? whole : null;
}
