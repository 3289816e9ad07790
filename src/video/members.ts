import type { GatewayError } from '../errors.js';
import type { CompiledSchema } from '../schema/accept.js';
import { type HeldMember, heldFields, heldMembers } from '../wire/count-members.js';
import { isObject, type JsonObject, numberOrNull } from '../wire/json.js';
import { foldName } from '../wire/member-guard.js';
import { wrongValue } from '../wire/reading.js';
import type { VideoRequest } from './task.js';

/*
 * How the members of bodies that ask for videos are read.
 */

/** Members that name the model in one of the formats. Servers that merge objects use the one of the overriding object. */
export const modelMembers = ['model', 'model_name', 'req_key'] as const;

/**
 * Objects in which servers look for top-level members, and which some merge over these; Replicate and fal have `input`.
 */
const prompts: ReadonlySet<string> = new Set([foldName('input')]);
const holders: ReadonlySet<string> = new Set([
  ...['metadata', 'extra_body', 'parameters', 'config'].map(foldName),
  ...prompts,
]);

/**
 * The members of these names in a request's body or form, and in the objects where some servers also look for them.
 * @param names folded by `foldName`
 * @throws {GatewayError} of status 400 for a string in place of such an object that cannot be parsed
 */
export function membersNamed(
  { body, form }: Pick<VideoRequest, 'body' | 'form'>,
  names: ReadonlySet<string>,
): Iterable<HeldMember> {
  const sought = { names, holders, prompts };
  return form === null ? heldMembers(body, sought) : heldFields(form, sought);
}

/** A member with its path in the client's body. */
export interface Member {
  readonly value: unknown;
  readonly at: string;
}

/**
 * Finds a member that only some vendors have: at the top of the body, else in its `metadata`, the generic format's place
 * for such members.
 * @returns null for one that is absent, null, or an empty text
 */
export function memberOf(body: JsonObject, name: string): Member | null {
  if (isGiven(body, name)) return { value: body[name], at: name };
  const { metadata } = body;
  if (!isObject(metadata) || !isGiven(metadata, name)) return null;
  return { value: metadata[name], at: `metadata.${name}` };
}

/** Path of the first of these members that the body has; the first name if it has none. */
export function pathOfMember(body: JsonObject, names: readonly [string, ...string[]]): string {
  for (const name of names) {
    const member = memberOf(body, name);
    if (member !== null) return member.at;
  }
  return names[0];
}

/** @throws {GatewayError} of status 400, naming the first member that violates the schema */
export function requireBody(schema: CompiledSchema, body: JsonObject): void {
  if (!schema.check(body)) throw schema.explain(body);
}

const decimal = /^\d{1,9}(?:\.\d{1,9})?$/;

/** A number, also written as a string: 5, 5.5 and "5"; null for anything else. */
export function numberIn(value: unknown): number | null {
  return typeof value === 'string' && decimal.test(value) ? Number(value) : numberOrNull(value);
}

/** The same for a length: above zero, and printed without an exponent. */
export function lengthIn(value: unknown): number | null {
  const length = numberIn(value) ?? 0;
  return length > 0 && decimal.test(String(length)) ? length : null;
}

/**
 * Reads a length in seconds.
 * @param at path in the client's body
 * @returns null without one
 * @throws {GatewayError} of status 400 for anything but a number above zero
 */
export function readDuration(value: unknown, at: string): number | null {
  if (!hasValue(value)) return null;
  const seconds = lengthIn(value);
  if (seconds === null) throw wrongLength(at);
  return seconds;
}

/** The 400 for a length that is not a number above zero. */
export function wrongLength(at: string): GatewayError {
  return wrongValue(at, 'a number above zero, such as 5 or "5"');
}

/**
 * Reads the number of videos requested.
 * @param at path in the client's body
 * @returns null without one
 * @throws {GatewayError} of status 400 for anything but a whole number above zero, since each video is charged
 */
export function readCount(value: unknown, at: string): number | null {
  if (!hasValue(value)) return null;
  const count = numberIn(value) ?? 0;
  if (!Number.isInteger(count) || count < 1 || count > maxVideos)
    throw wrongValue(at, `an integer between 1 and ${maxVideos}`);
  return count;
}

const maxVideos = 1000;

function isGiven(body: JsonObject, name: string): boolean {
  return Object.hasOwn(body, name) && hasValue(body[name]);
}

/** Whether a value is anything but undefined, null and an empty string. */
export function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** The vendorj format counts length in frames: 24 a second plus the first frame, so 121 for five seconds. */
export const framesPerSecond = 24;

/** The number of frames of a video of this many seconds. */
export function framesOf(seconds: number): number {
  return Math.round(framesPerSecond * seconds) + 1;
}
