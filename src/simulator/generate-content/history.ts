import { unseal } from '../answer/seal.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';

/** One turn of the conversation; its parts have been checked for themselves. */
export interface Content {
  readonly role: 'user' | 'model';
  readonly parts: readonly JsonObject[];
}

/** The members of a part of which it has exactly one. */
const data = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
];
/** What the protocol lets stand for the signature of a call that the model did not make. */
const noSignature = 'skip_thought_signature_validator';

function invalid(message: string): RequestError {
  return new RequestError(400, message);
}

/**
 * Reads `contents` as turns, checks each part, and that every call has its responses.
 * @throws RequestError
 */
export function readContents(contents: unknown): readonly Content[] {
  const list: readonly unknown[] = Array.isArray(contents) ? contents : [];
  if (list.length === 0) {
    throw invalid('* GenerateContentRequest.contents: contents is not specified');
  }
  const turns = merged(list.map((content, index) => readContent(content, `contents[${index}]`)));
  for (const [index, turn] of turns.entries()) {
    checkCalls(turn, turns[index - 1]);
  }
  return turns;
}

/** Neighbours of one role are one turn: clients keep each object of a stream as a content of its own. */
function merged(contents: readonly Content[]): readonly Content[] {
  const turns: Content[] = [];
  for (const content of contents) {
    const last = turns.at(-1);
    if (last?.role === content.role) {
      turns[turns.length - 1] = { ...last, parts: [...last.parts, ...content.parts] };
    } else {
      turns.push(content);
    }
  }
  return turns;
}

/** Reads one content: of the conversation, or the system instruction, whose role does not count. */
export function readContent(content: unknown, path: string): Content {
  const { role, parts }: JsonObject = isObject(content) ? content : {};
  const speaks = path === 'systemInstruction' ? 'user' : (role ?? 'user');
  // Servers of the protocol take this third role for the responses of functions.
  if (speaks !== 'user' && speaks !== 'model' && speaks !== 'function') {
    throw invalid('Please use a valid role: user, model.');
  }
  const list: readonly unknown[] = Array.isArray(parts) ? parts : [];
  if (list.length === 0) {
    throw invalid(`* GenerateContentRequest.${path}.parts: contents.parts must not be empty.`);
  }
  return {
    role: speaks === 'model' ? 'model' : 'user',
    parts: list.map((part, index) => readPart(part, `GenerateContentRequest.${path}.parts[${index}]`)),
  };
}

function readPart(part: unknown, path: string): JsonObject {
  const value: JsonObject = isObject(part) ? part : {};
  const held = data.filter((name) => value[name] !== undefined);
  if (held.length === 0) {
    throw invalid(`* ${path}.data: required oneof field 'data' must have one initialized field`);
  }
  if (held.length > 1) {
    throw invalid(
      `Invalid value at '${path}' (oneof), oneof field 'data' is already set. Cannot set '${held[1]}'`,
    );
  }
  if (value.text !== undefined && typeof value.text !== 'string') {
    throw invalid(`Invalid value at '${path}.text' (TYPE_STRING), ${JSON.stringify(value.text)}`);
  }
  for (const name of ['functionCall', 'functionResponse']) {
    const inner = value[name];
    if (isObject(inner) && (typeof inner.name !== 'string' || inner.name === '')) {
      throw invalid(`* ${path}.${name}.name: Name cannot be empty.`);
    }
  }
  checkObject(value.functionCall, 'args', `${path}.functionCall`);
  checkObject(value.functionResponse, 'response', `${path}.functionResponse`);
  checkBlob(value.inlineData, path);
  checkSignature(value.thoughtSignature, path);
  return value;
}

function checkObject(holder: unknown, name: string, path: string): void {
  const value = isObject(holder) ? holder[name] : undefined;
  if (value !== undefined && value !== null && !isObject(value)) {
    throw invalid(`Invalid value at '${path}.${name}' (type.googleapis.com/google.protobuf.Struct)`);
  }
}

function checkBlob(blob: unknown, path: string): void {
  if (!isObject(blob)) {
    return;
  }
  if (typeof blob.mimeType !== 'string' || blob.mimeType === '') {
    throw invalid(`* ${path}.inlineData.mimeType: must be specified`);
  }
  if (typeof blob.data !== 'string' || Buffer.from(blob.data, 'base64').length === 0) {
    throw invalid(`Invalid value at '${path}.inlineData.data' (TYPE_BYTES), Base64 decoding failed`);
  }
}

function checkSignature(signature: unknown, path: string): void {
  if (signature === undefined || signature === noSignature) {
    return;
  }
  if (typeof signature !== 'string' || unseal('thought', signature) === null) {
    throw invalid(`Thought signature is not valid at '${path}.thoughtSignature'.`);
  }
}

/** The function calls, or the responses to them, of one content. */
export function functionsIn(
  content: Content | undefined,
  kind: 'functionCall' | 'functionResponse',
): JsonObject[] {
  return (content?.parts ?? []).map((part) => part[kind]).filter(isObject);
}

function checkCalls(content: Content, previous: Content | undefined): void {
  const calls = content.role === 'model' ? functionsIn(content, 'functionCall') : [];
  const responses = functionsIn(content, 'functionResponse');
  const before = functionsIn(previous, 'functionCall');
  if (content.role === 'user' && functionsIn(content, 'functionCall').length > 0) {
    throw invalid('Please ensure that function calls are in contents of the role model.');
  }
  if (calls.length > 0 && previous === undefined) {
    throw invalid(
      'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
    );
  }
  if (responses.length > 0 && before.length === 0) {
    throw invalid('Please ensure that function response turn comes immediately after a function call turn.');
  }
  if (responses.length !== before.length) {
    throw invalid(
      'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
    );
  }
  checkNames(before, responses);
}

function checkNames(calls: readonly JsonObject[], responses: readonly JsonObject[]): void {
  const open = [...calls];
  for (const { name, id } of responses) {
    const at = open.findIndex(
      (call) => call.name === name && (id === undefined || call.id === undefined || call.id === id),
    );
    if (at < 0) {
      throw invalid(
        `Function response '${String(name)}' does not match any function call of the turn before it.`,
      );
    }
    open.splice(at, 1);
  }
}
