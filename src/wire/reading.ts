import { type ErrorKind, GatewayError } from '../errors.js';
import { type JsonObject, numberOrNull, textOrNull } from './json.js';

/*
 * How the decoders of client bodies read members whose types the schemas leave open.
 */

const longestName = 64;
/** Above it a character has two code units. */
const lastOfOneUnit = 0xffff;

/** What a type, a role or another word of others is called in a message: it may be of any shape and length. */
export function nameOfType(word: unknown): string {
  const name = textOrNull(word) ?? 'unknown';
  if (name.length <= longestName) return name;
  const isSplit = (name.codePointAt(longestName - 1) ?? 0) > lastOfOneUnit;
  return name.slice(0, isSplit ? longestName - 1 : longestName);
}

/** An error about a member of a client's body or query. @param at its path */
export function memberError(kind: ErrorKind, at: string, message: string): GatewayError {
  return new GatewayError(kind, message, { param: at });
}

/** The 400 for a member that is not there. @param at its path in the client's body, as of those below */
export function missingValue(at: string, wanted: string): GatewayError {
  return memberError('missing_parameter', at, `Missing required parameter '${at}': expected ${wanted}.`);
}

/** The 400 for a value of another type than the one that is wanted. */
export function wrongType(at: string, wanted: string): GatewayError {
  return memberError('invalid_request', at, `Invalid type for '${at}': expected ${wanted}.`);
}

/** The 400 for a value that the schema lets through and that means nothing. */
export function wrongValue(at: string, wanted: string): GatewayError {
  return invalidValue(at, `expected ${wanted}`);
}

/** The same. @param why a part of a sentence */
export function invalidValue(at: string, why: string): GatewayError {
  return memberError('invalid_value', at, `Invalid value for '${at}': ${why}.`);
}

/** The 400 for a field of a form that comes as a file. */
export function noFile(name: string): GatewayError {
  return memberError(
    'invalid_request',
    name,
    `'${name}' is not taken as a file here: send its value without a filename.`,
  );
}

/**
 * The `name` of a tool, or of a call of one.
 * @param at path of the object in the client's body
 * @throws {GatewayError} of status 400 for anything but a text that is not empty
 */
export function requireName({ name }: JsonObject, at: string): string {
  if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
  return name;
}

/** Reads stop sequences, one or a list: empty ones and what is no text are left out. */
export function decodeStop(stop: unknown): string[] {
  const sequences: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return sequences.filter((sequence): sequence is string => typeof sequence === 'string' && sequence !== '');
}

/** The value as the nearest whole number that a double holds exactly, or null when it is no such number. */
export function wholeOrNull(value: unknown): number | null {
  const whole = Math.round(numberOrNull(value) ?? Number.NaN);
  return Number.isSafeInteger(whole) ? whole : null;
}
