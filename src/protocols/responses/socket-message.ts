/** Messages of a WebSocket over which responses are made: what a client asks for, and what an upstream answers. */

import { namedId } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { isObject, parseObject } from '../../wire/json.js';
import { findJsonFault, invalidJson } from '../../wire/json-fault.js';
import { skipSpace, withMembers, withoutMembers } from '../../wire/json-skip.js';
import { type FoundMembers, noMembers } from '../../wire/member-guard.js';
import { memberError } from '../../wire/reading.js';
import type { SteeringMember } from '../../wire/steering-members.js';
import { messageGuard } from './request/schema.js';
import { frameResponse, responseText } from './response.js';

/** They belong to the message alone, or are given by it: an answer over a WebSocket is always a stream. */
const ofTheMessage = new Set(['type', 'stream', 'generate']);
/** What a message has of its own where it goes on from a response that is kept. */
const ofTheConversation = new Set(['input', 'previous_response_id', 'conversation', 'store']);
const wanted = '"response.create"';

/** What a client asks for with a message. */
interface ClientMessage {
  /** Body of the POST that asks for the same. */
  readonly body: Buffer;
  /** Nothing is to be generated: what the message holds is to be known when the next one goes on from it. */
  readonly isWarmUp: boolean;
  /** Members that could lead an upstream elsewhere, at any place where one may read them. */
  readonly steering: readonly SteeringMember[];
}

/**
 * Reads a message of a client.
 * @param message JSON text; copied
 * @returns the error for a message that asks for no response
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

/** Members that an upstream might read otherwise count for the message too, whose members are taken apart before its check. */
function membersOf(message: Buffer): FoundMembers | GatewayError {
  try {
    // What cannot be walked is refused as what it is.
    return messageGuard.look(message, skipSpace(message, 0), 'message') ?? noMembers;
  } catch (fault) {
    if (fault instanceof GatewayError) return fault;
    throw fault;
  }
}

/** What the body of a message says of the conversation that it belongs to. */
interface MessageConversation {
  /** JSON texts of the items of its input, with commas between them. */
  readonly items: string;
  /** The response that it goes on from, or null. */
  readonly previousId: string | null;
  /** Id of what the upstream keeps as a conversation, or null. */
  readonly conversationId: string | null;
  /** Whether the response is to be kept; null where nothing is said of that. */
  readonly store: boolean | null;
  /** Everything else, and how it is put together again with other items. */
  withItems(items: string): Buffer;
}

/**
 * @returns null when the body's members are not what they should be, which its validation says
 * @throws {GatewayError} `invalid_json` for an id that is broken, which its validation passes by where it is long
 */
export function readConversation(body: Buffer): MessageConversation | null {
  const found = withoutMembers(body, ofTheConversation);
  if (found === null) return null;
  const { rest, taken } = found;
  const items = itemsOf(taken.get('input') ?? '[]');
  const previous = taken.get('previous_response_id') ?? 'null';
  // Members that are passed by are not looked into before: it may be no id.
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

/** Whether a response is to be kept, by the JSON text of `store`; null where that says nothing. */
export function storeOf(text: string | undefined): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null;
}

/** @returns undefined for a JSON text that is no string, or a broken one */
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

/** Puts the items of two parts of a conversation together. */
export function joinItems(before: string, after: string): string {
  return before === '' || after === '' ? before + after : `${before},${after}`;
}

/** @returns the JSON texts of the items, or null for an input that is neither a text nor a list */
function itemsOf(input: string): string | null {
  if (input.startsWith('[')) return input.slice(1, -1).trim();
  return input.startsWith('"') ? `{"type":"message","role":"user","content":${input}}` : null;
}

/** The response that an event of a stream says to have been made. */
interface MadeResponse {
  readonly id: string;
  /** JSON texts of its items, with commas between them. */
  readonly items: string;
}

/** @returns what an event says that ends a response from which a client can go on; null for every other */
export function madeResponse(event: string): MadeResponse | null {
  const type = typeOf(event);
  if (type !== 'response.completed' && type !== 'response.incomplete') return null;
  const response = parseObject(event)?.response;
  if (!isObject(response) || typeof response.id !== 'string' || !Array.isArray(response.output)) return null;
  return { id: response.id, items: response.output.map((item) => JSON.stringify(item)).join(',') };
}

/** The response to a message that has nothing generated. */
export function warmUpAnswer(model: string, id: string, created: number): string {
  const frame = frameResponse({ id, created, model, echo: null });
  const usage = { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  return responseText(frame, { status: 'completed', output: '', usage });
}

/** @param body of the POST that asks for the same, in pieces */
export function messageOf(body: readonly Buffer[], isWarmUp: boolean): Buffer {
  const found = withoutMembers(Buffer.concat(body), ofTheMessage);
  if (found === null) throw new Error('a body that was taken is an object');
  return withMembers(`"type":"response.create"${isWarmUp ? ',"generate":false' : ''}`, found.rest);
}

const last: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** What the messages of an upstream mean. */
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

/** Servers begin an event with its type, or with little before it. */
const typeWithin = 256;
const usualBegin = '{"type":"';

/** @returns null where the text does not say it, or is cut before it does */
function typeOf(event: string): string | null {
  if (event.startsWith(usualBegin))
    return event.slice(usualBegin.length, event.indexOf('"', usualBegin.length));
  const found = withoutMembers(Buffer.from(event), new Set(['type']))?.taken.get('type');
  return found === undefined ? null : (textOf(found) ?? null);
}
