import { type Prompt, saidBy, type Tool, toolTokens } from '../answer/prompt.js';
import { unseal } from '../answer/seal.js';
import { countTokens } from '../answer/tokens.js';
import { chatModels } from '../chat/request.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import type { JsonRequest } from '../http/route.js';
import { imageModels, refuseFunctions } from './image.js';
import { type Generation, readGeneration, readToolChoice, readTools } from './settings.js';

/** The type of a field: anything, or an object, a list or a map of objects of a known message. */
type Kind = 'any' | { readonly one: string } | { readonly list: string } | { readonly map: string };

function message(any: string, others: Readonly<Record<string, Kind>> = {}): Readonly<Record<string, Kind>> {
  const names = any.split(' ').filter((name) => name !== '');
  return { ...Object.fromEntries(names.map((name) => [name, 'any' as const])), ...others };
}

/** The fields of each message of the protocol that the simulator checks. */
const messages: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  GenerateContentRequest: message('model safetySettings cachedContent labels serviceTier store', {
    contents: { list: 'Content' },
    systemInstruction: { one: 'Content' },
    tools: { list: 'Tool' },
    toolConfig: { one: 'ToolConfig' },
    generationConfig: { one: 'GenerationConfig' },
  }),
  CountTokensRequest: message('model', {
    contents: { list: 'Content' },
    generateContentRequest: { one: 'GenerateContentRequest' },
  }),
  Content: message('role', { parts: { list: 'Part' } }),
  Part: message(
    'text thought thoughtSignature executableCode codeExecutionResult videoMetadata mediaResolution partMetadata toolCall toolResponse',
    {
      inlineData: { one: 'Blob' },
      fileData: { one: 'FileData' },
      functionCall: { one: 'FunctionCall' },
      functionResponse: { one: 'FunctionResponse' },
    },
  ),
  Blob: message('mimeType data displayName'),
  FileData: message('fileUri mimeType displayName'),
  FunctionCall: message('id name args'),
  FunctionResponse: message('id name response parts willContinue scheduling'),
  Tool: message(
    'googleSearch googleSearchRetrieval codeExecution urlContext googleMaps computerUse fileSearch mcpServers',
    { functionDeclarations: { list: 'FunctionDeclaration' } },
  ),
  FunctionDeclaration: message('name description behavior parametersJsonSchema responseJsonSchema', {
    parameters: { one: 'Schema' },
    response: { one: 'Schema' },
  }),
  ToolConfig: message('retrievalConfig includeServerSideToolInvocations', {
    functionCallingConfig: { one: 'FunctionCallingConfig' },
  }),
  FunctionCallingConfig: message('mode allowedFunctionNames streamFunctionCallArguments'),
  GenerationConfig: message(
    'temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty seed responseMimeType responseJsonSchema responseLogprobs logprobs responseModalities speechConfig mediaResolution enableEnhancedCivicAnswers responseFormat',
    {
      responseSchema: { one: 'Schema' },
      imageConfig: { one: 'ImageConfig' },
      thinkingConfig: { one: 'ThinkingConfig' },
    },
  ),
  ImageConfig: message('aspectRatio imageSize personGeneration'),
  ThinkingConfig: message('includeThoughts thinkingBudget thinkingLevel'),
  Schema: message(
    'type format title description nullable enum maxItems minItems required minProperties maxProperties minLength maxLength pattern example propertyOrdering default minimum maximum',
    { properties: { map: 'Schema' }, items: { one: 'Schema' }, anyOf: { list: 'Schema' } },
  ),
};

/**
 * Reads a message of the protocol. Names in snake case are converted to camel case, since servers accept both.
 * @throws RequestError for an unknown field, or one of the wrong type
 */
function readMessage(value: JsonObject, name: string, path = ''): JsonObject {
  const fields = messages[name] ?? {};
  const read: Record<string, unknown> = {};
  for (const [written, inner] of Object.entries(value)) {
    const field = camel(written);
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (kind === undefined) {
      const at = path === '' ? '' : ` at '${path}'`;
      throw new RequestError(
        400,
        `Invalid JSON payload received. Unknown name "${written}"${at}: Cannot find field.`,
      );
    }
    if (inner !== null) {
      read[field] = readField(inner, kind, path === '' ? written : `${path}.${written}`);
    }
  }
  return read;
}

function readField(value: unknown, kind: Kind, path: string): unknown {
  if (kind === 'any') {
    return value;
  }
  if ('list' in kind) {
    // A list of one item may be given as the item.
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    return list.map((item, index) =>
      readMessage(objectAt(item, `${path}[${index}]`), kind.list, `${path}[${index}]`),
    );
  }
  if ('one' in kind) {
    return readMessage(objectAt(value, path), kind.one, path);
  }
  const members = Object.entries(objectAt(value, path));
  return Object.fromEntries(
    members.map(([name, item]) => {
      const place = `${path}[${JSON.stringify(name)}].value`;
      return [name, readMessage(objectAt(item, place), kind.map, place)];
    }),
  );
}

function objectAt(value: unknown, path: string): JsonObject {
  if (!isObject(value)) {
    throw new RequestError(400, `Invalid value at '${path}', ${JSON.stringify(value).slice(0, 80)}`);
  }
  return value;
}

function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

const tokensPerMedia = 85;

/** The members of a generateContent request that the simulator reads. */
export interface GenerateContentRequest {
  readonly model: string;
  readonly prompt: Prompt;
  readonly generation: Generation;
  /** Tokens of media, included in all input tokens. */
  readonly mediaTokens: number;
}

/**
 * Reads and checks the body of generateContent and of its stream.
 * @throws RequestError with what a caller did wrong
 */
export function readGenerateContent(request: JsonRequest, model: string): GenerateContentRequest {
  const asked = readPrompt(request, model, readMessage(request.body, 'GenerateContentRequest'));
  if (request.body.cachedContent !== undefined || request.body.cached_content !== undefined) {
    throw new RequestError(403, 'CachedContent not found (or permission denied)');
  }
  return asked;
}

/**
 * Reads and checks the body of countTokens: contents, or a whole request to generateContent.
 * @throws RequestError with what a caller did wrong
 */
export function readCountTokens(request: JsonRequest, model: string): GenerateContentRequest {
  const body = readMessage(request.body, 'CountTokensRequest');
  const inner = body.generateContentRequest;
  if (inner !== undefined && body.contents !== undefined) {
    throw new RequestError(400, 'contents and generateContentRequest cannot both be set.');
  }
  return readPrompt(request, model, isObject(inner) ? inner : body);
}

function readPrompt(request: JsonRequest, model: string, body: JsonObject): GenerateContentRequest {
  if (!chatModels.includes(model) && !imageModels.includes(model)) {
    const version = request.path.split('/')[1];
    throw new RequestError(
      404,
      `models/${model} is not found for API version ${version}, or is not supported for this method.`,
    );
  }
  const contents = readContents(body.contents);
  const system =
    body.systemInstruction === undefined ? [] : [readContent(body.systemInstruction, 'systemInstruction')];
  const tools = readTools(body.tools);
  refuseFunctions(tools.length, model);
  const { choice, allowed } = readToolChoice(body.toolConfig, tools);
  const generation = readGeneration(body.generationConfig, model);
  const users = contents.filter(({ role }) => role === 'user');
  const text = textOf(users.findLast(({ parts }) => parts.some(isText)));
  const mediaTokens = contents.reduce((sum, content) => sum + mediaIn(content), 0) * tokensPerMedia;
  return {
    model,
    generation,
    mediaTokens,
    prompt: {
      ...saidBy(text, request.directives),
      images: mediaIn(users.at(-1)),
      toolResults: functionsIn(contents.at(-1), 'functionResponse').map(responseText),
      tools: allowed,
      toolChoice: choice,
      parallelCalls: true,
      format: generation.format,
      reasoning: generation.thinking,
      maxTokens: generation.maxTokens,
      stop: generation.stop,
      inputTokens: Math.max(1, textTokens([...system, ...contents], tools) + mediaTokens),
      digest: request.digest,
    },
  };
}

function isText(part: JsonObject): boolean {
  return typeof part.text === 'string' && part.thought !== true;
}

function textOf(content: Content | undefined): string {
  return (content?.parts ?? [])
    .filter(isText)
    .map(({ text }) => String(text))
    .join('\n');
}

function mediaIn(content: Content | undefined): number {
  const parts = content?.parts ?? [];
  return parts.filter((part) => part.inlineData !== undefined || part.fileData !== undefined).length;
}

/** The text of a function response: its only member if that is a string, else all of it as JSON. */
function responseText({ response }: JsonObject): string {
  const values = isObject(response) ? Object.values(response) : [];
  const [only] = values;
  return values.length === 1 && typeof only === 'string' ? only : JSON.stringify(response ?? {});
}

function textTokens(contents: readonly Content[], tools: readonly Tool[]): number {
  const functions = contents.flatMap((content) => [
    ...functionsIn(content, 'functionCall').map(
      ({ name, args }) => String(name) + JSON.stringify(args ?? {}),
    ),
    ...functionsIn(content, 'functionResponse').map(responseText),
  ]);
  return [...contents.map(textOf), ...functions].reduce(
    (sum, part) => sum + countTokens(part),
    toolTokens(tools),
  );
}

/** A turn of the conversation, whose parts have been checked individually. */
interface Content {
  readonly role: 'user' | 'model';
  readonly parts: readonly JsonObject[];
}

/** Members of which a part has exactly one. */
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
/** The protocol's placeholder for the signature of a call that the model did not make. */
const noSignature = 'skip_thought_signature_validator';

function invalid(message: string): RequestError {
  return new RequestError(400, message);
}

/**
 * Reads `contents` as turns, checks each part, and that every call has its responses.
 * @throws RequestError
 */
function readContents(contents: unknown): readonly Content[] {
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

/** Merges consecutive contents of one role, since clients keep each object of a stream as its own content. */
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

/** Reads a content of the conversation, or the system instruction, whose role is ignored. */
function readContent(content: unknown, path: string): Content {
  const { role, parts }: JsonObject = isObject(content) ? content : {};
  const speaks = path === 'systemInstruction' ? 'user' : (role ?? 'user');
  // Servers of the protocol also accept the role `function` for function responses.
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

/** The function calls of a content, or its function responses. */
function functionsIn(content: Content | undefined, kind: 'functionCall' | 'functionResponse'): JsonObject[] {
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
