import type { AssistantPart, ConversationRequest, MediaPart, Tool, UserPart } from './request.js';

/** Bytes of UTF-8 per token: about four in European languages, fewer in JSON. */
const textBytes = 4;
const jsonBytes = 3;
/** Tokens around the content of a message or a tool. */
const messageTokens = 4;
const toolTokens = 12;
/** Tokens of an image of a common size, or of a page of a document. */
const imageTokens = 1500;
/** Bytes of a document, sound or video that count as much as an image. */
const mediaBytes = 64 * 1024;

/**
 * Estimates the input tokens of a request. The result is always the same for the same request. One token counts for
 * every four UTF-8 bytes of text and every three of JSON (arguments and schemas), besides four for each message and
 * twelve for each tool. An image counts 1500 tokens, as does every 64 KiB of other media, or any other media by URL. A
 * tokenizer's result differs by a fifth or more.
 */
export function estimateTokens({ system, turns, tools, format }: ConversationRequest): number {
  let tokens = 0;
  for (const text of system) tokens += messageTokens + textTokens(text);
  for (const turn of turns) {
    tokens += messageTokens;
    if (turn.role === 'system') tokens += textTokens(turn.text);
    else for (const part of turn.parts) tokens += partTokens(part);
  }
  for (const tool of tools) tokens += toolTokens + definitionTokens(tool);
  if (format?.kind === 'schema') tokens += jsonTokens(JSON.stringify(format.schema));
  return tokens;
}

function partTokens(part: UserPart | AssistantPart): number {
  switch (part.kind) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return textTokens(part.text);
    case 'toolCall':
      return messageTokens + textTokens(part.name) + jsonTokens(part.input);
    case 'toolResult': {
      let tokens = messageTokens;
      for (const each of part.content) tokens += partTokens(each);
      return tokens;
    }
    default:
      return mediaTokens(part);
  }
}

function mediaTokens({ kind, source }: MediaPart): number {
  if (kind === 'image' || source.kind === 'url') return imageTokens;
  // Four characters of base64 are three bytes.
  return imageTokens * Math.max(1, Math.ceil((source.data.length * 0.75) / mediaBytes));
}

function definitionTokens({ name, description, parameters }: Tool): number {
  const schema = parameters === null ? 0 : jsonTokens(JSON.stringify(parameters));
  return textTokens(name) + textTokens(description ?? '') + schema;
}

function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / textBytes);
}

function jsonTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / jsonBytes);
}
