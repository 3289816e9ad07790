import { registeredType, standardBase64 } from '../../../conversation/media-source.js';
import type {
  AssistantPart,
  ContentPart,
  ConversationRequest,
  HostedTool,
  MediaPart,
  MediaSource,
  OutputFormat,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import { carriedSignature, signatureFor } from '../../../conversation/signature.js';
import { plainSearch, textsIn, type WebSearch } from '../../../conversation/web-search.js';
import {
  decodeStop,
  isList,
  isObject,
  isObjectText,
  type JsonObject,
  listOf,
  nameOfType,
  numberOrNull,
  objectOf,
  textOf,
  textOrNull,
  wholeOrNull,
  wrongValue,
} from '../../../wire/json.js';
import { unreadMembers, untranslatable } from '../../unsupported.js';
import { CallIds } from '../call-ids.js';
import { readMembers } from '../read-members.js';
import { addReasoning, decodeReasoning } from '../reasoning.js';
import { mediaTypeOfFormat, responseFormatOf } from '../response-format.js';
import { schemaLimits } from '../schema-encode.js';
import { inCamelCase, keyOf, memberOf, repeated, snakeCase } from '../spelling.js';

/** Members of a `Schema` that are not part of JSON Schema. */
const ownMembers: ReadonlySet<string> = new Set(['nullable', 'example', 'propertyOrdering']);
/** Limits that are 64-bit integers, which protocol buffers write as strings. */
const limits: ReadonlySet<string> = new Set(schemaLimits);
const camelNames: ReadonlyMap<string, string> = new Map(
  ['anyOf', 'propertyOrdering', 'additionalProperties', ...limits].map((name) => [snakeCase(name), name]),
);

/**
 * Converts the vendor's `Schema` (a subset of OpenAPI 3.0: upper-case types, `nullable`) to JSON Schema. Members that
 * the vendor's does not have stay unchanged.
 */
export function decodeSchema(schema: JsonObject): JsonObject {
  const members: [string, unknown][] = [];
  for (const [key, value] of Object.entries(schema)) {
    const name = camelNames.get(key) ?? key;
    if (!ownMembers.has(name) && value !== null) addMember(members, name, value);
  }
  if (schema.nullable === true) allowNull(members);
  return Object.fromEntries(members);
}

function addMember(members: [string, unknown][], name: string, value: unknown): void {
  if (name === 'type' && typeof value === 'string') {
    if (value !== 'TYPE_UNSPECIFIED') members.push([name, value.toLowerCase()]);
  } else if (name === 'format' && value === 'enum') {
    // The format only shows that there is an `enum` beside it. JSON Schema has no such format.
    return;
  } else if (name === 'properties' && isObject(value)) {
    members.push([name, decodeProperties(value)]);
  } else if ((name === 'items' || name === 'additionalProperties') && isObject(value)) {
    members.push([name, decodeSchema(value)]);
  } else if (name === 'anyOf' && Array.isArray(value)) {
    members.push([name, value.map((branch: unknown) => (isObject(branch) ? decodeSchema(branch) : branch))]);
  } else if (limits.has(name) && typeof value === 'string' && Number.isSafeInteger(Number(value))) {
    members.push([name, Number(value)]);
  } else {
    members.push([name, value]);
  }
}

function decodeProperties(properties: JsonObject): JsonObject {
  // Object.fromEntries accepts every name, including `__proto__`.
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      isObject(schema) ? decodeSchema(schema) : schema,
    ]),
  );
}

function allowNull(members: [string, unknown][]): void {
  for (const member of members) {
    const [name, value] = member;
    if (name === 'type' && typeof value === 'string') member[1] = [value, 'null'];
    else if (name === 'enum' && isList(value)) member[1] = [...value, null];
    else if (name === 'anyOf' && isList(value)) member[1] = [...value, { type: 'null' }];
  }
}

/*
 * Web search as a tool of this protocol (https://ai.google.dev/gemini-api/docs/google-search). Models before Gemini 3
 * refuse it beside functions and beside JSON answers. Later ones take both, but require a setting that allows them to
 * report what the vendor ran, which Vertex AI does not have.
 */

/**
 * The members of a tool that request the search: the current one and the one for older models, each under both of its
 * names.
 */
const searchTools = ['googleSearch', 'googleSearchRetrieval'].flatMap((name) => [name, snakeCase(name)]);

/** @param key the member of the tool, one of `searchTools` */
function decodeSearch(key: string, value: unknown, at: string): WebSearch {
  const excluded = isObject(value) ? memberOf(value, 'excludeDomains') : null;
  return { ...plainSearch(key, at), blockedDomains: textsIn(excluded) };
}

/**
 * Reads the body of a generateContent request; see `TextCodec.decodeRequest`. Members may have either of their names.
 * Drops what no other protocol can express if the answer is the same without it, and media that the model itself made,
 * since no client can remove them from its history.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  const request = decodeWithMedia(body, stream);
  const leftOut = new Set(request.leftOut);
  const turns = request.turns.map((turn) => withoutMedia(turn, leftOut));
  return turns.every((turn, index) => turn === request.turns[index])
    ? request
    : { ...request, turns: turns.filter(hasParts), leftOut: [...leftOut] };
}

function hasParts(turn: Turn): boolean {
  return turn.role === 'system' || turn.parts.length > 0;
}

/** @param leftOut receives the names of members with media that are left out of a turn of the model */
function withoutMedia(turn: Turn, leftOut: Set<string>): Turn {
  if (turn.role !== 'assistant' || !turn.parts.some(isMedia)) return turn;
  for (const part of turn.parts) if (isMedia(part)) leftOut.add(part.at.slice(part.at.lastIndexOf('.') + 1));
  return { ...turn, parts: turn.parts.filter((part) => !isMedia(part)) };
}

function isMedia(part: AssistantPart): part is MediaPart {
  return 'source' in part;
}

/** Does the same, but keeps the media of the model. */
export function decodeWithMedia(body: JsonObject, stream: boolean): ConversationRequest {
  if (textOrNull(memberOf(body, 'cachedContent'))) throw untranslatable(keyOf(body, 'cachedContent'));
  const named = memberOf(body, 'generationConfig');
  const given = objectOf(named);
  const config = inCamelCase(given);
  const configAt = keyOf(body, 'generationConfig');
  requireText(config, given, configAt);
  const { tools, hostedTools, search } = decodeTools(body);
  return {
    from: 'generateContent',
    stream,
    leftOut: [...unreadMembers(body, readMembers), ...heldToSchemas(body)],
    system: decodeSystem(memberOf(body, 'systemInstruction'), keyOf(body, 'systemInstruction')),
    systemCache: undefined,
    turns: decodeContents(body.contents),
    tools,
    hostedTools,
    search,
    toolChoice: decodeToolChoice(body),
    parallelCalls: null,
    format: decodeFormat(config, given, configAt),
    reasoning: decodeReasoning(config.thinkingConfig, `${configAt}.${keyOf(given, 'thinkingConfig')}`),
    maxTokens: numberOrNull(config.maxOutputTokens),
    temperature: numberOrNull(config.temperature),
    topP: numberOrNull(config.topP),
    topK: wholeOrNull(config.topK),
    stop: decodeStop(config.stopSequences),
    candidates: numberOrNull(config.candidateCount) ?? 1,
    seed: numberOrNull(config.seed),
    presencePenalty: numberOrNull(config.presencePenalty),
    frequencyPenalty: numberOrNull(config.frequencyPenalty),
    logitBias: null,
    logprobs: config.responseLogprobs === true ? (numberOrNull(config.logprobs) ?? 0) : null,
    verbosity: null,
    user: null,
    includeUsage: true,
    echo: null,
    compaction: null,
  };
}

/**
 * Refuses a request for images or audio.
 * @param given the config in the client's spelling
 */
function requireText(config: JsonObject, given: JsonObject, at: string): void {
  const modalities = config.responseModalities;
  if (Array.isArray(modalities)) {
    const other: unknown = modalities.find(isNoText);
    if (other !== undefined) {
      throw untranslatable(`${at}.${keyOf(given, 'responseModalities')}`, `with '${nameOfType(other)}'`);
    }
  }
  for (const name of ['imageConfig', 'speechConfig'])
    if ((config[name] ?? null) !== null) throw untranslatable(`${at}.${keyOf(given, name)}`);
  for (const kind of ['image', 'audio', 'video'] as const) {
    const format = responseFormatOf(given, kind, at);
    if (format !== null) throw untranslatable(format.at);
  }
}

function isNoText(modality: unknown): boolean {
  if (typeof modality !== 'string') return true;
  const upper = modality.toUpperCase();
  return upper !== 'TEXT' && upper !== 'MODALITY_UNSPECIFIED';
}

function decodeFormat(config: JsonObject, given: JsonObject, at: string): OutputFormat | null {
  const text = responseFormatOf(given, 'text', at);
  const format = objectOf(text?.value);
  const older = textOf(config.responseMimeType);
  const mediaType = older || mediaTypeOfFormat(format);
  const schema = outputSchema(config) ?? (isObject(format.schema) ? format.schema : null);
  const isWord = mediaType === enumType && schema !== null;
  if (!isWord && mediaType !== '' && mediaType !== 'text/plain' && mediaType !== 'application/json') {
    const isOlder = older !== '' || text === null;
    const typeAt = isOlder
      ? `${at}.${keyOf(given, 'responseMimeType')}`
      : `${text.at}.${keyOf(format, 'mimeType')}`;
    throw untranslatable(typeAt, `of '${nameOfType(mediaType)}'`);
  }
  if (schema !== null)
    return { kind: 'schema', name: null, description: null, schema, strict: null, bare: isWord || undefined };
  return mediaType === 'application/json' ? { kind: 'object' } : null;
}

/** The answer is one of the schema's values, not JSON. */
const enumType = 'text/x.enum';

/** Returns the schema of the answer as JSON Schema. */
function outputSchema(config: JsonObject): JsonObject | null {
  for (const name of ['responseJsonSchema', '_responseJsonSchema', 'responseSchema']) {
    const schema = config[name];
    if (!isObject(schema)) continue;
    return name === 'responseSchema' ? decodeSchema(schema) : schema;
  }
  return null;
}

/** Kinds of files by the extension in a URL's path, for files without a type. */
const kindsByEnding: Readonly<Record<string, MediaPart['kind']>> = {
  png: 'image',
  jpg: 'image',
  jpeg: 'image',
  gif: 'image',
  webp: 'image',
  wav: 'audio',
  mp3: 'audio',
  mp4: 'video',
};

/**
 * Reads the `inlineData` or `fileData` of a part.
 * @param at path of the part in the client's body
 * @returns null for a part that has neither
 * @throws {GatewayError} of status 400 for data without a type, and for files that the vendor stores
 */
function decodeMedia(part: JsonObject, at: string): MediaPart | null {
  const inline = memberOf(part, 'inlineData');
  if (isObject(inline)) return inlineMedia(inline, `${at}.${keyOf(part, 'inlineData')}`);
  const file = memberOf(part, 'fileData');
  return isObject(file) ? fileMedia(file, `${at}.${keyOf(part, 'fileData')}`) : null;
}

function inlineMedia(blob: JsonObject, at: string): MediaPart {
  const mediaType = mediaTypeOf(blob);
  if (mediaType === null)
    throw wrongValue(`${at}.${keyOf(blob, 'mimeType')}`, "a media type such as 'image/png'");
  const source: MediaSource = { kind: 'data', mediaType, data: standardBase64(textOf(blob.data)) };
  return { kind: kindOfType(mediaType), source, detail: null, name: nameOf(blob), at };
}

function fileMedia(file: JsonObject, at: string): MediaPart {
  const url = textOrNull(memberOf(file, 'fileUri'));
  const urlAt = `${at}.${keyOf(file, 'fileUri')}`;
  if (url === null) throw wrongValue(urlAt, 'a URL');
  if (!isPublic(url)) throw untranslatable(urlAt, '(a file that is kept by the vendor)');
  const mediaType = mediaTypeOf(file);
  const kind = mediaType === null ? kindOfUrl(url) : kindOfType(mediaType);
  return { kind, source: { kind: 'url', url, mediaType }, detail: null, name: nameOf(file), at };
}

/**
 * Tells whether a URL is public. The vendor's stores are `gs://` and its files API, which needs the client's own key.
 */
function isPublic(url: string): boolean {
  return /^https?:\/\//i.test(url) && !/^https?:\/\/[\w.-]*\.googleapis\.com\/v1\w*\/files\//i.test(url);
}

function mediaTypeOf(blob: JsonObject): string | null {
  const mediaType = textOf(memberOf(blob, 'mimeType')).trim();
  return mediaType === '' ? null : registeredType(mediaType);
}

function kindOfType(mediaType: string): MediaPart['kind'] {
  const family = mediaType.slice(0, mediaType.indexOf('/'));
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}

function kindOfUrl(url: string): MediaPart['kind'] {
  if (/^https?:\/\/(?:www\.|m\.)?(?:youtube\.com|youtu\.be)\//i.test(url)) return 'video';
  const [path = ''] = url.split(/[?#]/, 1);
  return kindsByEnding[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? 'document';
}

function nameOf(blob: JsonObject): string | null {
  return textOrNull(memberOf(blob, 'displayName')) || null;
}

/**
 * Reads `contents`. Contents without parts are left out. The SDK's chats store each event of a stream as a separate
 * content. Consecutive contents of the model are therefore one turn, since other protocols need its reasoning and calls
 * in one message.
 * @throws {GatewayError} of status 400 for roles and parts that cannot be translated
 */
function decodeContents(contents: unknown): Turn[] {
  const turns: Turn[] = [];
  const ids = new CallIds();
  let open: ModelTurn | null = null;
  for (const [content, at] of repeated(contents, 'contents')) {
    const role = content.role ?? 'user';
    // Older clients give results a role of their own.
    if (role === 'user' || role === 'function' || role === '') {
      const parts = decodeUserParts(content, at, ids);
      if (parts.length === 0) continue;
      turns.push({ role: 'user', parts });
      open = null;
    } else if (role === 'model') {
      if (open === null) {
        ids.beginTurn();
        open = { parts: [], unsignedFrom: 0, signature: null };
      }
      addModelParts(open, { content, at, ids });
      if (open.parts.length > 0 && turns.at(-1)?.role !== 'assistant')
        turns.push({ role: 'assistant', parts: open.parts });
    } else {
      throw untranslatable(at, `with the role '${nameOfType(role)}'`);
    }
  }
  return turns;
}

/**
 * Reads `systemInstruction`: a content, or a plain string.
 * @param at path of it in the client's body
 * @throws {GatewayError} of status 400 for a part that is not a text
 */
function decodeSystem(instruction: unknown, at: string): string[] {
  if (typeof instruction === 'string') return instruction === '' ? [] : [instruction];
  if (!isObject(instruction)) return [];
  const texts: string[] = [];
  for (const [part, partAt] of repeated(instruction.parts, `${at}.parts`)) {
    if (typeof part.text !== 'string') throw untranslatable(partAt, '(a part that is no text)');
    if (part.text !== '') texts.push(part.text);
  }
  return texts;
}

function decodeUserParts(content: JsonObject, at: string, ids: CallIds): UserPart[] {
  const results: ToolResultPart[] = [];
  const others: ContentPart[] = [];
  for (const [part, partAt] of repeated(content.parts, `${at}.parts`)) {
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

/** A turn of the model to which contents are added. */
interface ModelTurn {
  readonly parts: AssistantPart[];
  /** Index of the first part that may be reasoning without a signature. */
  unsignedFrom: number;
  /** The last signature that was read. */
  signature: string | null;
}

interface ModelContent {
  readonly content: JsonObject;
  readonly at: string;
  readonly ids: CallIds;
}

/** Adds a content to its turn. A text at the beginning of the content continues a text at the end of the turn. */
function addModelParts(turn: ModelTurn, { content, at, ids }: ModelContent): void {
  const { parts } = turn;
  let goesOn = parts.at(-1)?.kind === 'text';
  for (const [part, partAt] of repeated(content.parts, `${at}.parts`)) {
    const signature = carriedSignature('generateContent', textOf(memberOf(part, 'thoughtSignature')), false);
    if (part.thought === true) {
      addReasoning(parts, textOf(part.text), signature);
      if (signature !== null) {
        turn.unsignedFrom = parts.length;
        turn.signature = signature;
      }
      continue;
    }
    if (signature !== null) addSigned(turn, signature);
    const call = memberOf(part, 'functionCall');
    if (isObject(call)) {
      parts.push(decodeCall(call, `${partAt}.${keyOf(part, 'functionCall')}`, ids));
    } else if (signature === null || !isBare(part)) {
      const spoken = spokenPart(part, partAt);
      const last = parts.at(-1);
      if (spoken?.kind === 'text' && last?.kind === 'text' && goesOn)
        parts[parts.length - 1] = { ...last, text: last.text + spoken.text };
      else if (spoken !== null) parts.push(spoken);
      if (spoken !== null) goesOn = false;
    }
    if (signature !== null || isObject(call)) turn.unsignedFrom = parts.length;
  }
}

/**
 * Adds the reasoning of a signature, which stands on the next part. The vendor's own signature belongs to that part. In
 * answers of other vendors' models, it stands after the texts that followed the reasoning. Some clients copy it to
 * further parts, whose reasoning it is not.
 */
function addSigned(turn: ModelTurn, signature: string): void {
  const { parts, unsignedFrom } = turn;
  if (signatureFor('generateContent', signature) !== null) {
    addReasoning(parts, '', signature);
    return;
  }
  if (turn.signature === signature) return;
  turn.signature = signature;
  // Earlier parts are not examined again, however many parts are signed.
  let shown = parts.length - 1;
  while (shown >= unsignedFrom && !isUnsigned(parts[shown])) shown--;
  const thought = shown < unsignedFrom ? undefined : parts[shown];
  if (thought?.kind === 'reasoning') parts[shown] = { ...thought, signature };
  else parts.splice(unsignedFrom, 0, { kind: 'reasoning', text: '', signature });
}

function isUnsigned(part: AssistantPart | undefined): boolean {
  return part?.kind === 'reasoning' && part.signature === null;
}

/** Tells whether a part has nothing but its signature. */
function isBare(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || key === keyOf(part, 'thoughtSignature'));
}

/**
 * Returns a text or a medium. Returns null for an empty text, for what a tool of the vendor left there, and for a part of
 * an unknown kind.
 * @throws {GatewayError} of status 400 for a part of a turn of another role
 */
function spokenPart(part: JsonObject, at: string): ContentPart | null {
  if (typeof part.text === 'string') return part.text === '' ? null : { kind: 'text', text: part.text };
  const media = decodeMedia(part, at);
  if (media !== null) return media;
  const misplaced = ['functionCall', 'functionResponse'].find((name) => memberOf(part, name) !== null);
  if (misplaced !== undefined) throw untranslatable(`${at}.${keyOf(part, misplaced)}`);
  if (Object.keys(part).length > 0) return null;
  throw wrongValue(at, "an object with 'text', 'inlineData' or another kind of data");
}

function decodeCall(call: JsonObject, at: string, ids: CallIds): ToolCallPart {
  const name = textOf(call.name);
  const id = ids.ofCall(name, textOrNull(call.id) || null);
  const input = isObject(call.args) ? JSON.stringify(call.args) : '{}';
  return { kind: 'toolCall', id, name, input, custom: false, at };
}

function decodeResult(result: JsonObject, at: string, ids: CallIds): ToolResultPart {
  const name = textOf(result.name);
  const callId = ids.ofResult(name, textOrNull(result.id) || null);
  const response = isObject(result.response) ? result.response : null;
  const content: ContentPart[] = [];
  const text = response === null ? '' : resultText(response);
  if (text !== '') content.push({ kind: 'text', text });
  for (const [part, partAt] of repeated(result.parts, `${at}.parts`)) {
    const media = decodeMedia(part, partAt);
    if (media === null) throw untranslatable(partAt);
    content.push(media);
  }
  return { kind: 'toolResult', callId, name, content, isError: Boolean(response?.error), at };
}

/**
 * Returns the text of a result. The protocol requires an object, so a text stands in one of three members by
 * convention.
 */
function resultText(response: JsonObject): string {
  const [key, ...others] = Object.keys(response);
  if (key !== undefined && others.length === 0) {
    const value = response[key];
    if (key === 'error' && value) return typeof value === 'string' ? value : JSON.stringify(value);
    // The text of an object would be written back as that object, not as a member of one.
    const isText = typeof value === 'string' && !isObjectText(value);
    if ((key === 'result' || key === 'output') && isText) return value;
  }
  return JSON.stringify(response);
}

const declarations = 'functionDeclarations';

/** Reads `tools`: the functions in them, and tools that the vendor runs. */
function decodeTools(body: JsonObject): Pick<ConversationRequest, 'tools' | 'hostedTools' | 'search'> {
  const tools: Tool[] = [];
  const hostedTools: HostedTool[] = [];
  let search: WebSearch | undefined;
  for (const [tool, at] of repeated(body.tools, 'tools')) {
    const functionsAt = `${at}.${keyOf(tool, declarations)}`;
    for (const [declaration] of repeated(memberOf(tool, declarations), functionsAt))
      tools.push(decodeFunction(declaration));
    for (const [key, value] of Object.entries(tool)) {
      if (value === null || key === declarations || key === snakeCase(declarations)) continue;
      const type = nameOfType(key);
      const path = `${at}.${type}`;
      if (search === undefined && searchTools.includes(key)) search = decodeSearch(key, value, path);
      else hostedTools.push({ type, at: path });
    }
  }
  return { tools, hostedTools, search };
}

/**
 * Reads `toolConfig`.
 * @throws {GatewayError} of status 400 for a mode that is not documented
 */
function decodeToolChoice(body: JsonObject): ToolChoice | null {
  const config = memberOf(body, 'toolConfig');
  const calling = isObject(config) ? memberOf(config, 'functionCallingConfig') : null;
  if (!isObject(calling) || !isObject(config)) return null;
  const mode = textOrNull(calling.mode)?.toUpperCase() ?? 'MODE_UNSPECIFIED';
  if (mode === 'NONE') return { mode: 'none' };
  const required = mode === 'ANY';
  if (!required && mode !== 'AUTO' && mode !== 'VALIDATED' && mode !== 'MODE_UNSPECIFIED') {
    const at = `${keyOf(body, 'toolConfig')}.${keyOf(config, 'functionCallingConfig')}.mode`;
    throw wrongValue(at, "'AUTO', 'ANY', 'NONE' or 'VALIDATED'");
  }
  const names = listOf(memberOf(calling, 'allowedFunctionNames')).filter((name) => typeof name === 'string');
  const [name] = names;
  if (name === undefined)
    return mode === 'MODE_UNSPECIFIED' ? null : { mode: required ? 'required' : 'auto' };
  return required && names.length === 1 ? { mode: 'named', name } : { mode: 'allowed', names, required };
}

/**
 * Returns the name of a setting that is left out. `VALIDATED` enforces the schemas of the model's calls, and leaves it
 * free to answer with text. Other protocols have a mark on each tool for that, and allow fewer schemas.
 */
function heldToSchemas(body: JsonObject): string[] {
  const config = memberOf(body, 'toolConfig');
  const calling = isObject(config) ? memberOf(config, 'functionCallingConfig') : null;
  const isHeld = isObject(calling) && textOrNull(calling.mode)?.toUpperCase() === 'VALIDATED';
  return isHeld ? ['toolConfig.functionCallingConfig.mode'] : [];
}

function decodeFunction(declaration: JsonObject): Tool {
  return {
    name: textOf(declaration.name),
    description: textOrNull(declaration.description),
    parameters: decodeParameters(declaration),
    strict: null,
  };
}

function decodeParameters(declaration: JsonObject): JsonObject | null {
  const schema = memberOf(declaration, 'parametersJsonSchema');
  if (isObject(schema)) return schema;
  return isObject(declaration.parameters) ? decodeSchema(declaration.parameters) : null;
}
