import type { StreamEvent } from '../../conversation/events.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../wire/json.js';
import { argumentsText } from './answer/decode.js';

/** Calls that an answer may have; SDKs take no more. */
const maxCalls = 128;
/** Characters of arguments that a stream may have waiting for the names of their calls. */
const maxHeld = 8 * 1024 * 1024;
/** Stands for the index of a call in the older `function_call` form. */
const functionCallIndex = -1;

interface Call {
  /** Number in its choice once it has a name and was told of; before, -1. */
  number: number;
  id: string;
  name: string;
  /** Arguments that came before the name. */
  held: string;
  readonly custom: boolean;
  readonly progress: JsonProgress;
  ended: boolean;
}

/** What waits for the names of calls, in all choices of a stream. */
export interface HeldArguments {
  length: number;
}

/** What is known of the tool calls of one choice while its stream is read. */
export interface CallDeltas {
  readonly choice: number;
  readonly byIndex: Map<number, Call>;
  readonly calls: Call[];
  /** The call that the last fragment was of. */
  current: Call | undefined;
  /** Calls that were told of. */
  started: number;
  readonly held: HeldArguments;
}

/** @param held shared by the choices of a stream */
export function createCallDeltas(choice: number, held: HeldArguments): CallDeltas {
  return { choice, byIndex: new Map(), calls: [], current: undefined, started: 0, held };
}

/**
 * Reads the tool calls of one delta. A call begins with its first fragment and goes on with those of the same index;
 * where upstreams leave the index out, with those of the same id and, where there is none either, with what follows.
 * Calls may alternate, so one that is whole ends when another begins, and the rest when the choice does.
 * @returns what makes the stream unusable, or null
 */
export function readCalls(deltas: CallDeltas, delta: JsonObject, out: StreamEvent[]): GatewayError | null {
  for (const fragment of listOf(delta.tool_calls)) {
    const error = isObject(fragment) ? readFragment(deltas, fragment, fragment.index, out) : null;
    if (error !== null) return error;
  }
  if (!isObject(delta.function_call)) return null;
  return readFragment(deltas, { function: delta.function_call }, functionCallIndex, out);
}

/** Ends the calls that are still open. */
export function endCalls(deltas: CallDeltas, out: StreamEvent[]): void {
  for (const call of deltas.calls) endCall(deltas, call, out);
}

function readFragment(
  deltas: CallDeltas,
  fragment: JsonObject,
  index: unknown,
  out: StreamEvent[],
): GatewayError | null {
  const custom = isObject(fragment.custom);
  const inner = isObject(fragment.custom) ? fragment.custom : fragment.function;
  const body = objectOf(inner);
  const id = textOf(fragment.id);
  const name = textOf(body.name);
  const text = argumentsText(custom ? body.input : body.arguments);
  let call =
    typeof index === 'number'
      ? indexedCall(deltas.byIndex.get(index), { id, name, text })
      : callWithoutIndex(deltas, id, name);
  if (call === undefined) {
    if (deltas.calls.length === maxCalls)
      return new GatewayError(
        'upstream_error',
        `The upstream's answer has more than ${maxCalls} tool calls.`,
      );
    endWholeCalls(deltas, out);
    call = { number: -1, id, name: '', held: '', custom, progress: jsonStart(), ended: false };
    deltas.calls.push(call);
    if (typeof index === 'number') deltas.byIndex.set(index, call);
  }
  deltas.current = call;
  if (call.number === -1) {
    if (call.id === '') call.id = id;
    if (name !== '') startCall(deltas, call, name, out);
  }
  return addInput(deltas, call, text, out);
}

/**
 * The call of this index, unless the fragment begins another. Ids that some upstreams make anew for each fragment, and
 * names that they repeat, do not tell that alone.
 */
function indexedCall(
  call: Call | undefined,
  { id, name, text }: { readonly id: string; readonly name: string; readonly text: string },
): Call | undefined {
  if (call === undefined || id === '' || id === call.id || name === '') return call;
  // The last fragment of an upstream that repeats the name in each, and has no more to say.
  if (name === call.name && text === '' && call.progress.complete) return call;
  return beginsAnother(call, name) ? undefined : call;
}

/** The call that a fragment without an index goes on with, if any. */
function callWithoutIndex(deltas: CallDeltas, id: string, name: string): Call | undefined {
  const { calls, current } = deltas;
  if (id !== '') {
    const own = calls.findLast((call) => call.id === id);
    // An id may come after the first fragment.
    if (own !== undefined || current === undefined || current.id !== '') return own;
  }
  return current !== undefined && name !== '' && beginsAnother(current, name) ? undefined : current;
}

/** Whether a fragment with this name, which is not known to be of the call, cannot be of it. */
function beginsAnother(call: Call, name: string): boolean {
  return call.progress.complete || (call.name !== '' && call.name !== name);
}

function startCall(deltas: CallDeltas, call: Call, name: string, out: StreamEvent[]): void {
  const { choice } = deltas;
  const { id, custom, held } = call;
  call.number = deltas.started++;
  call.name = name;
  out.push({ kind: 'callStart', choice, call: call.number, id, name, custom });
  if (held === '') return;
  deltas.held.length -= held.length;
  call.held = '';
  out.push({ kind: 'callArguments', choice, call: call.number, text: held });
}

function addInput(deltas: CallDeltas, call: Call, text: string, out: StreamEvent[]): GatewayError | null {
  if (text === '') return null;
  if (call.ended) {
    if (text.trim() === '') return null;
    return new GatewayError('upstream_error', 'The upstream goes on with a tool call that was whole before.');
  }
  if (!call.custom) {
    // Some upstreams write no arguments as null.
    if (call.progress.depth === 0 && text.trim() === 'null') return null;
    advance(call.progress, text);
  }
  if (call.number !== -1) {
    out.push({ kind: 'callArguments', choice: deltas.choice, call: call.number, text });
    return null;
  }
  call.held += text;
  deltas.held.length += text.length;
  if (deltas.held.length <= maxHeld) return null;
  return new GatewayError('upstream_error', "The upstream's tool call has no name.");
}

function endWholeCalls(deltas: CallDeltas, out: StreamEvent[]): void {
  for (const call of deltas.calls) if (call.progress.complete) endCall(deltas, call, out);
}

/** A call that never got a name was never told of: nobody could answer it. */
function endCall(deltas: CallDeltas, call: Call, out: StreamEvent[]): void {
  if (call.ended) return;
  call.ended = true;
  if (call.number !== -1) out.push({ kind: 'callEnd', choice: deltas.choice, call: call.number });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** How far a JSON object or array has come whose text arrives in fragments. */
interface JsonProgress {
  depth: number;
  inString: boolean;
  escaped: boolean;
  /** The outermost bracket has closed. */
  complete: boolean;
}

function jsonStart(): JsonProgress {
  return { depth: 0, inString: false, escaped: false, complete: false };
}

/** Goes on over the next fragment, without keeping any of it. Brackets are counted, the rest is not checked. */
function advance(progress: JsonProgress, fragment: string): void {
  for (let at = 0; at < fragment.length && !progress.complete; at++) {
    const code = fragment.charCodeAt(at);
    if (progress.inString) {
      if (progress.escaped) progress.escaped = false;
      else if (code === BACKSLASH) progress.escaped = true;
      else if (code === QUOTE) progress.inString = false;
    } else if (code === QUOTE) {
      progress.inString = true;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      progress.depth++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      progress.depth--;
      progress.complete = progress.depth <= 0;
    }
  }
}
