import { isUtf8 } from 'node:buffer';
import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/bytes.js';
import { costError, costsMore, isObject, memberError, parseJson, usualCost } from '../../wire/json.js';
import { skipSpace, textStart } from '../../wire/json-skip.js';
import { MemberGuard } from '../../wire/member-guard.js';
import { looksLikeText } from '../../wire/plain-text.js';
import type { SteeringMember } from '../../wire/routed-members.js';
import { openaiError } from '../error-formats/formats.js';
import { encodedKeyError, keyError, vendorAccountErrorOf } from '../error-formats/vendor-account.js';
import { hasOwnType, isPlainEvent } from './event-type.js';

/*
 * Events of clients are passed on unchanged, except for the model that they name and for members that could redirect
 * the upstream: the call was routed, and is charged, as one of another model.
 */

const named = { reads: ['model'], notes: ['model'], steers: true };
const transcription = { reads: ['model'], notes: ['model'] };
const guard = new MemberGuard({
  reads: ['type', 'session', 'response'],
  within: {
    session: {
      ...named,
      reads: ['model', 'audio', 'input_audio_transcription'],
      within: {
        input_audio_transcription: transcription,
        audio: {
          reads: ['input'],
          within: { input: { reads: ['transcription'], within: { transcription } } },
        },
      },
    },
    response: named,
  },
  steers: true,
});

/** Paths of the session's own model. The others are those of the model that transcribes the input. */
const ownPaths: ReadonlySet<string> = new Set(['session.model', 'response.model']);

/** Bytes that may follow the opening bracket of a list. */
const listBegins = Buffer.from('{["]-0123456789tfn');
const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

/** The names of a session's model. */
export interface SessionModel {
  /** The client's name for it. */
  readonly model: string;
  readonly upstreamModel: string;
  /** Members that could redirect the upstream but that its config allows. */
  readonly allowed: ReadonlySet<SteeringMember>;
  /**
   * Called with the name of the model that is to transcribe the client's speech, and its path.
   * @returns the upstream's name of it, or the error for a model that the client may not use
   */
  readonly transcribeBy: (name: string, at: string) => string | GatewayError;
}

/**
 * Judges an event of a client.
 * @param isBinary bytes that are not JSON are then audio
 * @returns the event to send on, with the upstream's name of the model, or the error for it
 */
export function judgeEvent(event: Buffer, isBinary: boolean, session: SessionModel): Buffer | GatewayError {
  if (isPlainEvent(event)) return event;
  const isMarked = event[0] === utf8Mark[0] && event.subarray(0, utf8Mark.length).equals(utf8Mark);
  const start = skipSpace(event, isMarked ? utf8Mark.length : 0);
  // Audio rarely begins like that and is valid text throughout, except for very short pieces.
  const isText = !isBinary || (beginsLikeJson(event, start) && !event.includes(0) && isUtf8(event));
  if (isText) {
    const fault = textFault(event, start);
    if (fault !== null) return fault;
  } else if (event[start] !== OPEN_BRACE) {
    // Anything but an object is not an event. An upstream rejects it, or treats it as audio.
    return mayBeObject(event) ? notJson : event;
  }
  try {
    const found = guard.look(event, start, 'event');
    if (found === null) return isText || mayBeObject(event) ? notJson : event;
    const steering = found.steering.find((name) => !session.allowed.has(name));
    if (steering !== undefined) return steered(steering);
    let judged = event;
    // In reverse order, so that earlier offsets remain valid.
    for (const { start: from, end, path } of [...found.noted].reverse()) {
      const name: unknown = JSON.parse(event.toString('utf8', from, end));
      const sent = upstreamName(name, path, session);
      if (sent instanceof GatewayError) return sent;
      if (sent === name) continue;
      judged = Buffer.concat([
        judged.subarray(0, from),
        Buffer.from(JSON.stringify(sent)),
        judged.subarray(end),
      ]);
    }
    return judged;
  } catch (fault) {
    if (fault instanceof GatewayError) return fault;
    throw fault;
  }
}

/** Returns the upstream's name for a model that an event names, or why it may not. Null is passed on. */
function upstreamName(name: unknown, path: string, session: SessionModel): unknown {
  if (name === null) return null;
  if (ownPaths.has(path)) {
    const { model, upstreamModel } = session;
    return name === model || name === upstreamModel ? upstreamModel : otherModel(model, path);
  }
  // Anything but a string is for the upstream to refuse.
  return typeof name === 'string' ? session.transcribeBy(name, path) : name;
}

/**
 * Returns why a text is not an event, or null. Parsers differ on a second value after the first, on numbers such as
 * `NaN`, and on lists in place of an object.
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
 * Returns whether some parser may read an object where this one reads none: Python's accepts bytes in UTF-16 and
 * UTF-32, and numbers such as `NaN`. Audio rarely begins and ends like that.
 */
function mayBeObject(event: Buffer): boolean {
  let at = 0;
  while (isPassedOver(event[at])) at++;
  // Some servers read a list as a list of events.
  if (event[at] === OPEN_BRACKET) at = behind(event, at);
  if (event[at] !== OPEN_BRACE || event[behind(event, at)] !== QUOTE) return false;
  let end = event.length - 1;
  while (isPassedOver(event[end])) end--;
  return event[end] === CLOSE_BRACE || event[end] === CLOSE_BRACKET;
}

/** Returns the offset of the next byte that is not skipped. */
function behind(event: Buffer, at: number): number {
  let next = at + 1;
  while (isPassedOver(event[next])) next++;
  return next;
}

/**
 * Returns whether an object or list may begin at an offset, by its first two characters (RFC 8259 sections 4 and 5).
 */
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

function otherModel(model: string, path: string): GatewayError {
  return memberError(
    'invalid_value',
    path,
    `The session is one of the model '${model}': open another one for another model.`,
  );
}

/**
 * Makes the server event that reports an error of the gateway to a client.
 * @param id unique within the session
 * @param refused id of the client's event that is refused; null for none
 */
export function errorEvent(error: GatewayError, id: string, refused: string | null): string {
  const members = openaiError(error).slice(0, -1);
  return `{"type":"error","event_id":"event_${id}","error":${members},"event_id":${JSON.stringify(refused)}}}`;
}

/** The vendor's bound of a client's ids, and what of an event is read for one. */
const longestId = 512;
const longestRefused = 64 * 1024;

/**
 * Returns the id that a client has given to an event; null for none, and undefined for one that is unknown: that of an
 * event that is no JSON or is long, or an id that is no text or is long.
 */
export function clientEventId(event: Buffer): string | null | undefined {
  if (event.length > longestRefused) return undefined;
  const parsed = parseJson(event.toString('utf8'), usualCost);
  if (!isObject(parsed)) return undefined;
  const id = parsed.event_id ?? null;
  return id === null || (typeof id === 'string' && id.length <= longestId) ? id : undefined;
}

/** Every event of the protocol with an error contains one of these: the word itself, or its escaped form. */
const errorMarks = [Buffer.from('error'), Buffer.from('\\u')];
/** Events with an error are shorter than this. */
const longest = 1024 * 1024;

/**
 * Returns the error for an upstream's message that would expose the gateway's account there. Null if the message may be
 * passed on.
 * @param isBinary the message is audio unless it looks like text
 */
export function vendorAccountErrorOfMessage(
  message: Buffer,
  isBinary: boolean,
  secrets: OwnSecrets,
): GatewayError | null {
  const ofKey = isBinary ? encodedKeyError(message, secrets) : keyError(message, secrets);
  if (ofKey !== null || message.length > longest || (isBinary && !looksLikeText(message))) return ofKey;
  const start = textStart(message);
  const isOwn = hasOwnType(message);
  // The type decides nothing else: for duplicate members, what counts depends on the parser.
  if (isOwn && !errorMarks.some((mark) => message.includes(mark))) return null;
  const standing = isOwn ? 'own' : message[start] === OPEN_BRACE ? 'strange' : 'error';
  return vendorAccountErrorOf(message.toString('utf8', start), standing, secrets);
}
