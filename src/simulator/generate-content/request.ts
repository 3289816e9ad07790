import { type Prompt, saidBy, type Tool, toolTokens } from '../answer/prompt.js';
import { countTokens } from '../answer/tokens.js';
import { chatModels } from '../chat/request.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import type { JsonRequest } from '../http/route.js';
import { type Content, functionsIn, readContent, readContents } from './history.js';
import { imageModels, refuseFunctions } from './image.js';
import { type Generation, readGeneration, readToolChoice, readTools } from './settings.js';

/** What a field may hold: anything, or an object, a list of objects or a map of objects of a known message. */
type Kind = 'any' | { readonly one: string } | { readonly list: string } | { readonly map: string };

function message(any: string, others: Readonly<Record<string, Kind>> = {}): Readonly<Record<string, Kind>> {
  const names = any.split(' ').filter((name) => name !== '');
  return { ...Object.fromEntries(names.map((name) => [name, 'any' as const])), ...others };
}

/** The fields of each message of the protocol, as far as the simulator looks into it. */
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
 * Reads a message of the protocol: names in snake case come out in camel case, as servers of the protocol take both.
 * @throws RequestError for a field that the message does not have, or one that is not an object or list where it must be
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
    // A list may be given as its only item.
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

/** A request of generateContent as far as the simulator reads it. */
export interface GenerateContentRequest {
  readonly model: string;
  readonly prompt: Prompt;
  readonly generation: Generation;
  /** Tokens of what is not text, which are part of all input tokens. */
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

/** What a function responded: its only member where that is a text, else all of it as JSON. */
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
