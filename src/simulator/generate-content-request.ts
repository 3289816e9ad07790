import { chatModels } from './chat-request.js';
import { textDirectives } from './directives.js';
import { readMessage } from './generate-content-fields.js';
import { type Content, functionsIn, readContent, readContents } from './generate-content-history.js';
import { imageModels, refuseFunctions } from './generate-content-image.js';
import { type Generation, readGeneration } from './generate-content-settings.js';
import { readToolChoice, readTools } from './generate-content-tools.js';
import { isObject, type JsonObject } from './json.js';
import type { Prompt, Tool } from './prompt.js';
import { type ProtocolRequest, RequestError } from './protocol-route.js';
import { countTokens } from './tokens.js';

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
export function readGenerateContent(request: ProtocolRequest, model: string): GenerateContentRequest {
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
export function readCountTokens(request: ProtocolRequest, model: string): GenerateContentRequest {
  const body = readMessage(request.body, 'CountTokensRequest');
  const inner = body.generateContentRequest;
  if (inner !== undefined && body.contents !== undefined) {
    throw new RequestError(400, 'contents and generateContentRequest cannot both be set.');
  }
  return readPrompt(request, model, isObject(inner) ? inner : body);
}

function readPrompt(request: ProtocolRequest, model: string, body: JsonObject): GenerateContentRequest {
  if (!chatModels.includes(model) && !imageModels.includes(model)) {
    const version = request.target.split('/')[1];
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
  const asked = textDirectives(text);
  const mediaTokens = contents.reduce((sum, content) => sum + mediaIn(content), 0) * tokensPerMedia;
  return {
    model,
    generation,
    mediaTokens,
    prompt: {
      text,
      plainText: asked.rest,
      directives: [...request.directives, ...asked.directives],
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
  const offered = tools.map((tool) => tool.name + JSON.stringify(tool.parameters ?? {}));
  const functions = contents.flatMap((content) => [
    ...functionsIn(content, 'functionCall').map(
      ({ name, args }) => String(name) + JSON.stringify(args ?? {}),
    ),
    ...functionsIn(content, 'functionResponse').map(responseText),
  ]);
  return [...contents.map(textOf), ...functions, ...offered].reduce(
    (sum, part) => sum + countTokens(part),
    0,
  );
}
