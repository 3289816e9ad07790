/** Messages of a WebSocket over which responses are made: a client's requests and an upstream's events. */

import { namedId } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { isObject, memberError, parseObject } from '../../wire/json.js';
import { findJsonFault, invalidJson } from '../../wire/json-fault.js';
import { skipSpace, withMembers, withoutMembers } from '../../wire/json-skip.js';
import { type FoundMembers, noMembers } from '../../wire/member-guard.js';
import type { SteeringMember } from '../../wire/routed-members.js';
import { messageGuard } from './request/schema.js';
import { frameResponse, responseText } from './response.js';

/** Members that belong only to the message, or that it implies: an answer over a WebSocket is always a stream. */
const ofTheMessage = new Set(['type', 'stream', 'generate']);
/** Members that the message itself has if it continues from a kept response. */
const ofTheConversation = new Set(['input', 'previous_response_id', 'conversation', 'store']);
const wanted = '"response.create"';

/** A client's request in a message. */
interface ClientMessage {
  /** Body of the equivalent POST request. */
  readonly body: Buffer;
  /** Nothing is generated. The next message can continue from the content of this one. */
  readonly isWarmUp: boolean;
  /** Members that could direct an upstream elsewhere, at any place where an upstream may read them. */
  readonly steering: readonly SteeringMember[];
}

/**
 * Reads a message of a client.
 * @param message JSON text; copied
 * @returns the error for a message that does not request a response
 */
export function readMessage(message: Buffer): ClientMessage | GatewayError {
  const found = withoutMembers(message, ofTheMessage);
  const members = membersOf(message);
  if (members instanceof GatewayError) return members;
  if (found === null) return notAnObject(message);
  const type = found.taken.get('type');
  if (type !== wanted)
    return memberError(
      type === undefined ? 'missing_parameter' : 'invalid_value',
      'type',
      `A message has the type 'response.create'${type === undefined ? '' : `, and not ${type.slice(0, 100)}`}.`,
    );
  const isWarmUp = found.taken.get('generate') === 'false';
  return { body: withMembers('"stream":true', found.rest), isWarmUp, steering: members.steering };
}

/**
 * Members that an upstream might read differently count for the message, too: its members are taken apart before they
 * are checked.
 */
function membersOf(message: Buffer): FoundMembers | GatewayError {
  try {
    // A message that cannot be parsed is refused for that reason.
    return messageGuard.look(message, skipSpace(message, 0), 'message') ?? noMembers;
  } catch (fault) {
    if (fault instanceof GatewayError) return fault;
    throw fault;
  }
}

/** The members of a message's body about its conversation. */
interface MessageConversation {
  /** JSON texts of the input's items, separated by commas. */
  readonly items: string;
  /** Id of the response that it continues from, or null. */
  readonly previousId: string | null;
  /** Id of the conversation that the upstream stores, or null. */
  readonly conversationId: string | null;
  /** Whether to store the response; null if not set. */
  readonly store: boolean | null;
  /** Returns the body with other items, and everything else unchanged. */
  withItems(items: string): Buffer;
}

/**
 * @returns null if the body's members are of a wrong type, which its validation reports
 * @throws {GatewayError} `invalid_json` for a malformed id, which its validation skips if it is long
 */
export function readConversation(body: Buffer): MessageConversation | null {
  const found = withoutMembers(body, ofTheConversation);
  if (found === null) return null;
  const { rest, taken } = found;
  const items = itemsOf(taken.get('input') ?? '[]');
  const previous = taken.get('previous_response_id') ?? 'null';
  // The validation does not examine skipped members: the value may not be an id.
  const previousId = previous === 'null' ? null : textOf(previous);
  if (previousId === undefined && previous.startsWith('"')) throw invalidJson(body);
  if (items === null || previousId === undefined) return null;
  const store = taken.get('store');
  const conversation = taken.get('conversation');
  const kept =
    (store === undefined ? '' : `"store":${store},`) +
    (conversation === undefined ? '' : `"conversation":${conversation},`);
  return {
    items,
    previousId,
    conversationId: namedId(conversation),
    store: storeOf(store),
    withItems: (all) => withMembers(`${kept}"input":[${all}]`, rest),
  };
}

/** Returns whether a response is to be stored, for the JSON text of `store`; null if it is not set. */
export function storeOf(text: string | undefined): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null;
}

/** @returns undefined for a JSON text that is not a string, or a malformed one */
function textOf(text: string): string | undefined {
  if (!text.startsWith('"')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

function notAnObject(message: Buffer): GatewayError {
  return findJsonFault(message) === null
    ? new GatewayError('invalid_json', 'The message is not a JSON object.')
    : invalidJson(message);
}

/** Joins the items of two parts of a conversation. */
export function joinItems(before: string, after: string): string {
  return before === '' || after === '' ? before + after : `${before},${after}`;
}

/** @returns JSON texts of the items, or null for an input that is neither a text nor a list */
function itemsOf(input: string): string | null {
  if (input === 'null') return '';
  if (input.startsWith('[')) return input.slice(1, -1).trim();
  return input.startsWith('"') ? `{"type":"message","role":"user","content":${input}}` : null;
}

/** The complete response in an event of a stream. */
interface MadeResponse {
  readonly id: string;
  /** JSON texts of its items, separated by commas. */
  readonly items: string;
}

/** @returns the response if the event ends one that a client can continue from; else null */
export function madeResponse(event: string): MadeResponse | null {
  const type = typeOf(event);
  if (type !== 'response.completed' && type !== 'response.incomplete') return null;
  const response = parseObject(event)?.response;
  if (!isObject(response) || typeof response.id !== 'string' || !Array.isArray(response.output)) return null;
  return { id: response.id, items: response.output.map((item) => JSON.stringify(item)).join(',') };
}

/** Returns the response to a message that generates nothing. */
export function warmUpAnswer(model: string, id: string, created: number): string {
  const frame = frameResponse({ id, created, model, echo: null });
  const usage = { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  return responseText(frame, { status: 'completed', output: '', usage });
}

/** @param body of the equivalent POST request, in chunks */
export function messageOf(body: readonly Buffer[], isWarmUp: boolean): Buffer {
  const found = withoutMembers(Buffer.concat(body), ofTheMessage);
  if (found === null) throw new Error('a body that was taken is an object');
  return withMembers(`"type":"response.create"${isWarmUp ? ',"generate":false' : ''}`, found.rest);
}

const last: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** How the messages of an upstream are interpreted. */
export const socketStreamRules = {
  judge(message: Buffer): 'more' | 'last' | 'error' {
    const type = typeOf(message.toString('utf8', 0, typeWithin)) ?? typeOf(message.toString('utf8'));
    if (type === 'error') return 'error';
    return type !== null && last.has(type) ? 'last' : 'more';
  },
  refusal(message: Buffer): { readonly status: number; readonly body: Buffer } {
    const { type: _, status, status_code: other, ...rest } = parseObject(message.toString('utf8')) ?? {};
    const said = typeof status === 'number' ? status : other;
    const isStatus = typeof said === 'number' && said >= 400 && said < 600;
    return { status: isStatus ? said : 502, body: Buffer.from(JSON.stringify(rest)) };
  },
};

/** Servers write the type of an event first, or after a few bytes. */
const typeWithin = 256;
const usualBegin = '{"type":"';

/** @returns null if the text has no type, or is cut before it */
function typeOf(event: string): string | null {
  if (event.startsWith(usualBegin))
    return event.slice(usualBegin.length, event.indexOf('"', usualBegin.length));
  const found = withoutMembers(Buffer.from(event), new Set(['type']))?.taken.get('type');
  return found === undefined ? null : (textOf(found) ?? null);
}
