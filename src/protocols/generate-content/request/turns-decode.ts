import type {
  AssistantPart,
  MediaPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { carriedSignature } from '../../../conversation/signature.js';
import { isObject, isObjectText, type JsonObject, textOrNull } from '../../../wire/json.js';
import { untranslatable } from '../../unsupported.js';
import { CallIds } from '../call-ids.js';
import { keyOf, memberOf } from '../spelling.js';
import { decodeMedia, wrongValue } from './content-decode.js';

/**
 * Reads `contents`. Contents that say nothing are left out.
 * @throws {GatewayError} of status 400 for roles and parts that cannot be translated
 */
export function decodeContents(contents: unknown): Turn[] {
  if (!Array.isArray(contents)) throw wrongValue('contents', 'an array');
  const turns: Turn[] = [];
  const ids = new CallIds();
  contents.forEach((content: unknown, index) => {
    const at = `contents[${index}]`;
    if (!isObject(content)) throw wrongValue(at, "an object with 'parts'");
    const role = content.role ?? 'user';
    // Older clients give results a role of their own.
    if (role === 'user' || role === 'function' || role === '') {
      const parts = decodeUserParts(content, at, ids);
      if (parts.length > 0) turns.push({ role: 'user', parts });
    } else if (role === 'model') {
      if (turns.at(-1)?.role !== 'assistant') ids.beginTurn();
      const parts = decodeModelParts(content, at, ids);
      if (parts.length > 0) turns.push({ role: 'assistant', parts });
    } else {
      throw typeof role === 'string'
        ? untranslatable(at, `with the role '${role}'`)
        : wrongValue(`${at}.role`, "'user' or 'model'");
    }
  });
  return turns;
}

/**
 * Reads `systemInstruction`: a content, or a plain string.
 * @param at path of it in the client's body
 * @throws {GatewayError} of status 400 for a part that is no text
 */
export function decodeSystem(instruction: unknown, at: string): string[] {
  if (typeof instruction === 'string') return instruction === '' ? [] : [instruction];
  if (!isObject(instruction)) return [];
  const texts: string[] = [];
  for (const [part, partAt] of partsOf(instruction, at)) {
    if (typeof part.text !== 'string') throw untranslatable(partAt, '(a part that is no text)');
    if (part.text !== '') texts.push(part.text);
  }
  return texts;
}

function decodeUserParts(
  content: JsonObject,
  at: string,
  ids: CallIds,
): (ToolResultPart | TextPart | MediaPart)[] {
  const results: ToolResultPart[] = [];
  const others: (TextPart | MediaPart)[] = [];
  for (const [part, partAt] of partsOf(content, at)) {
    const response = memberOf(part, 'functionResponse');
    if (isObject(response)) {
      results.push(decodeResult(response, `${partAt}.${keyOf(part, 'functionResponse')}`, ids));
    } else {
      const spoken = spokenPart(part, partAt);
      if (spoken !== null) others.push(spoken);
    }
  }
  return results.length === 0 ? others : [...results, ...others];
}

function decodeModelParts(content: JsonObject, at: string, ids: CallIds): AssistantPart[] {
  const parts: AssistantPart[] = [];
  for (const [part, partAt] of partsOf(content, at)) {
    const signature = carriedSignature(
      'generateContent',
      textOrNull(memberOf(part, 'thoughtSignature')) ?? '',
      false,
    );
    if (part.thought === true) {
      addReasoning(parts, textOrNull(part.text) ?? '', signature);
      continue;
    }
    // The signature of the reasoning before a part stands on the part itself.
    if (signature !== null) addReasoning(parts, '', signature);
    const call = memberOf(part, 'functionCall');
    if (isObject(call)) {
      parts.push(decodeCall(call, `${partAt}.${keyOf(part, 'functionCall')}`, ids));
    } else if (signature === null || !isBare(part)) {
      const spoken = spokenPart(part, partAt);
      if (spoken !== null) parts.push(spoken);
    }
  }
  return parts;
}

/** Thoughts in a row, up to a signature, are one reasoning: protocols that sign it keep both in one block. */
function addReasoning(parts: AssistantPart[], text: string, signature: string | null): void {
  if (text === '' && signature === null) return;
  const last = parts.at(-1);
  if (last?.kind === 'reasoning' && last.signature === null) {
    parts[parts.length - 1] = { kind: 'reasoning', text: last.text + text, signature };
  } else {
    parts.push({ kind: 'reasoning', text, signature });
  }
}

/** True for a part that has nothing but its signature. */
function isBare(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || key === keyOf(part, 'thoughtSignature'));
}

/** A text or a medium, or null for a text that is empty. */
function spokenPart(part: JsonObject, at: string): TextPart | MediaPart | null {
  if (typeof part.text === 'string') return part.text === '' ? null : { kind: 'text', text: part.text };
  const media = decodeMedia(part, at);
  if (media !== null) return media;
  const [key] = Object.keys(part);
  throw key === undefined
    ? wrongValue(at, "an object with 'text', 'inlineData' or another kind of data")
    : untranslatable(`${at}.${key}`);
}

function decodeCall(call: JsonObject, at: string, ids: CallIds): ToolCallPart {
  const name = requireName(call, at);
  const id = ids.ofCall(name, textOrNull(call.id) || null);
  const input = isObject(call.args) ? JSON.stringify(call.args) : '{}';
  return { kind: 'toolCall', id, name, input, custom: false, at };
}

function decodeResult(result: JsonObject, at: string, ids: CallIds): ToolResultPart {
  const name = requireName(result, at);
  const callId = ids.ofResult(name, textOrNull(result.id) || null, at);
  const response = isObject(result.response) ? result.response : null;
  const content: (TextPart | MediaPart)[] = [];
  const text = response === null ? '' : resultText(response);
  if (text !== '') content.push({ kind: 'text', text });
  for (const [part, partAt] of partsOf(result, at)) {
    const media = decodeMedia(part, partAt);
    if (media === null) throw untranslatable(partAt);
    content.push(media);
  }
  return { kind: 'toolResult', callId, name, content, isError: Boolean(response?.error), at };
}

/** The text of a result: the protocol wants an object, so a text stands in one of three members by custom. */
function resultText(response: JsonObject): string {
  const [key, ...others] = Object.keys(response);
  if (key !== undefined && others.length === 0) {
    const value = response[key];
    if (key === 'error' && value) return typeof value === 'string' ? value : JSON.stringify(value);
    // The text of an object would come back as that object, not as the member of one.
    const isText = typeof value === 'string' && !isObjectText(value);
    if ((key === 'result' || key === 'output') && isText) return value;
  }
  return JSON.stringify(response);
}

function* partsOf(content: JsonObject, at: string): Generator<[part: JsonObject, at: string]> {
  const { parts } = content;
  if (parts === undefined || parts === null) return;
  if (isObject(parts)) {
    yield [parts, `${at}.parts`];
    return;
  }
  if (!Array.isArray(parts)) throw wrongValue(`${at}.parts`, 'an array of parts');
  for (const [index, part] of (parts as readonly unknown[]).entries()) {
    if (!isObject(part)) throw wrongValue(`${at}.parts[${index}]`, 'an object');
    yield [part, `${at}.parts[${index}]`];
  }
}

function requireName(named: JsonObject, at: string): string {
  if (typeof named.name !== 'string' || named.name === '')
    throw wrongValue(`${at}.name`, 'the name of the function');
  return named.name;
}
