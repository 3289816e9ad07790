import { isUtf8 } from 'node:buffer';
import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { costError, costsMore, isObject, parseJson, usualCost } from '../../wire/json.js';
import { skipSpace, textStart } from '../../wire/json-skip.js';
import { MemberGuard } from '../../wire/member-guard.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { memberError } from '../../wire/reading.js';
import type { SteeringMember } from '../../wire/steering-members.js';
import { openaiError } from '../error-formats/openai.js';
import { encodedKeyError, keyError, vendorAccountErrorOf } from '../error-formats/vendor-account.js';
import { isPlainEvent } from './event-type.js';

/*
 * What clients send in a session passes as it came, but the model that an event names for it, and what could lead the
 * upstream elsewhere: the call was routed and is paid for as one of another.
 */

const named = { reads: ['model'], notes: ['model'], steers: true };
const guard = new MemberGuard({
  reads: ['type', 'session', 'response'],
  within: { session: named, response: named },
  steers: true,
});

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
/** What may stand behind the bracket of a list. */
const listBegins = Buffer.from('{["]-0123456789tfn');
const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

/** What the session's model is called. */
export interface SessionModel {
  /** By the client. */
  readonly model: string;
  readonly upstreamModel: string;
  /** Members that could lead the upstream elsewhere, and that its config allows. */
  readonly allowed: ReadonlySet<SteeringMember>;
}

/**
 * Judges an event of a client.
 * @param isBinary bytes that are no JSON are sound then
 * @returns the event as it may be sent on: the same, with the upstream's name of the model, or why it may not be
 */
export function judgeEvent(
  event: Buffer,
  isBinary: boolean,
  { model, upstreamModel, allowed }: SessionModel,
): Buffer | GatewayError {
  if (isPlainEvent(event)) return event;
  const isMarked = event[0] === utf8Mark[0] && event.subarray(0, utf8Mark.length).equals(utf8Mark);
  const start = skipSpace(event, isMarked ? utf8Mark.length : 0);
  // A sound hardly ever begins like that and is text all through; a byte or two of one may.
  const isText = !isBinary || (beginsLikeJson(event, start) && !event.includes(0) && isUtf8(event));
  if (isText) {
    const fault = textFault(event, start);
    if (fault !== null) return fault;
  } else if (event[start] !== OPEN_BRACE) {
    // What is no object is no event: an upstream says so, or takes it for sound.
    return mayBeObject(event) ? notJson : event;
  }
  try {
    const found = guard.look(event, start, 'event');
    if (found === null) return isText || mayBeObject(event) ? notJson : event;
    const steering = found.steering.find((name) => !allowed.has(name));
    if (steering !== undefined) return steered(steering);
    let judged = event;
    // From the last on, so that the places of those before stay.
    for (const { start: from, end } of [...found.noted].reverse()) {
      const name: unknown = JSON.parse(event.toString('utf8', from, end));
      if (name === upstreamModel || name === null) continue;
      if (name !== model) return otherModel(model);
      judged = Buffer.concat([
        judged.subarray(0, from),
        Buffer.from(JSON.stringify(upstreamModel)),
        judged.subarray(end),
      ]);
    }
    return judged;
  } catch (fault) {
    if (fault instanceof GatewayError) return fault;
    throw fault;
  }
}

/**
 * Why a text is no event, or null: readers differ on a second value behind the first, on numbers such as `NaN`, and on
 * lists where an object belongs.
 */
function textFault(event: Buffer, start: number): GatewayError | null {
  if (costsMore(event, usualCost)) return tooCostly;
  const parsed = parseJson(event.toString('utf8', start), usualCost);
  if (parsed === undefined) return notJson;
  if (!isObject(parsed)) return notObject;
  const list = ['session', 'response'].find((name) => Array.isArray(parsed[name]));
  return list === undefined ? null : listed(list);
}

/**
 * Whether some reader may take it for an object though it is none here: Python's takes bytes in UTF-16 and UTF-32, and
 * numbers such as `NaN`. Sound hardly ever begins and ends like that.
 */
function mayBeObject(event: Buffer): boolean {
  let at = 0;
  while (isPassedOver(event[at])) at++;
  // Some take a list for the events in it.
  if (event[at] === OPEN_BRACKET) at = behind(event, at);
  if (event[at] !== OPEN_BRACE || event[behind(event, at)] !== QUOTE) return false;
  let end = event.length - 1;
  while (isPassedOver(event[end])) end--;
  return event[end] === CLOSE_BRACE || event[end] === CLOSE_BRACKET;
}

/** What follows the byte at a place, and what is passed over. */
function behind(event: Buffer, at: number): number {
  let next = at + 1;
  while (isPassedOver(event[next])) next++;
  return next;
}

/** Whether an object or a list may begin there, by its first two signs (RFC 8259 sections 4 and 5). */
function beginsLikeJson(event: Buffer, start: number): boolean {
  const next = event[skipSpace(event, start + 1)];
  if (event[start] === OPEN_BRACE) return next === QUOTE || next === CLOSE_BRACE;
  return event[start] === OPEN_BRACKET && next !== undefined && listBegins.includes(next);
}

/** White space, bytes of wide characters, and byte order marks. */
function isPassedOver(byte: number | undefined): boolean {
  return byte !== undefined && passedOver.has(byte);
}

const passedOver: ReadonlySet<number> = new Set([
  ...[0x00, 0x09, 0x0a, 0x0d, 0x20],
  ...[0xfe, 0xff, ...utf8Mark],
]);

const notJson = new GatewayError(
  'invalid_json',
  'The event is not valid JSON in UTF-8, or is nested too deep.',
);

const tooCostly = costError('event', usualCost);

const notObject = new GatewayError(
  'invalid_json',
  'The event is not a JSON object: send one object a message.',
);

function listed(name: string): GatewayError {
  return memberError('invalid_value', name, `The event's '${name}' is a list: send an object.`);
}

function steered(name: SteeringMember): GatewayError {
  return memberError(
    'unsupported_parameter',
    name,
    `The event has '${name}', which could lead the upstream elsewhere than the gateway's routing says: leave it out.`,
  );
}

function otherModel(model: string): GatewayError {
  return memberError(
    'invalid_value',
    'session.model',
    `The session is one of the model '${model}': open another one for another model.`,
  );
}

/**
 * The server event that tells a client of an error of the gateway's own.
 * @param id unique within the session
 */
export function errorEvent(error: GatewayError, id: string): string {
  const members = openaiError(error).slice(0, -1);
  return `{"type":"error","event_id":"event_${id}","error":${members},"event_id":null}}`;
}

/** An event's type stands in its first bytes, unless it is none of the protocol's own. */
const typeWithin = 256;
const typeKey = Buffer.from('"type"');
/** Without one of these no event of the protocol's own has an error: its name is written as it is, or in escapes. */
const errorMarks = [Buffer.from('error'), Buffer.from('\\u')];
const errorType = /error|fail/i;
/** What tells of an error is shorter. */
const longest = 1024 * 1024;

const quote = 0x22;
const openBrace = 0x7b;
const openBracket = 0x5b;

/**
 * What an upstream's message says of the gateway's account there, or would tell of it; null for what may pass.
 * @param isBinary a sound, where it does not look like a text
 */
export function vendorAccountErrorOfMessage(
  message: Buffer,
  isBinary: boolean,
  secrets: OwnSecrets,
): GatewayError | null {
  const ofKey = isBinary ? encodedKeyError(message, secrets) : keyError(message, secrets);
  if (ofKey !== null || message.length > longest || (isBinary && !looksLikeText(message))) return ofKey;
  const start = textStart(message);
  const type = ownType(message, start);
  const isOwn = type !== null && !errorType.test(type);
  // A type decides nothing else: what comes twice counts as its reader takes it.
  if (isOwn && !errorMarks.some((mark) => message.includes(mark))) return null;
  const standing = isOwn ? 'own' : message[start] === openBrace ? 'strange' : 'error';
  return vendorAccountErrorOf(message.toString('utf8', start), standing, secrets);
}

/** The type of an event of the protocol's own, all of which have a dot in it; null for anything else. */
function ownType(message: Buffer, start: number): string | null {
  const at = typeKeyAt(message, start);
  if (at === -1) return null;
  const begin = message.indexOf(quote, at + typeKey.length);
  if (begin === -1) return null;
  let end = begin + 1;
  while (end <= begin + typeWithin && message[end] !== quote) end++;
  if (message[end] !== quote) return null;
  const type = message.toString('latin1', begin + 1, end);
  return type.includes('.') && !type.includes('\\') ? type : null;
}

/**
 * Where the type's name stands, or -1: one that stands deeper is not the event's. A loop is faster here than the native
 * search, which costs more to call than the few bytes do.
 */
function typeKeyAt(message: Buffer, start: number): number {
  const last = Math.min(message.length, typeWithin) - typeKey.length;
  for (let at = start; at <= last; at++) {
    const byte = message[at];
    if (byte === quote && isTypeKey(message, at)) return at;
    if (at > start && (byte === openBrace || byte === openBracket)) return -1;
  }
  return -1;
}

function isTypeKey(message: Buffer, at: number): boolean {
  for (let i = 1; i < typeKey.length; i++) if (message[at + i] !== typeKey[i]) return false;
  return true;
}
