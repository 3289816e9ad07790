import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import type { TargetOptions, TextCodec } from '../../conversation/codec.js';
import { searchToken, tokenMarks, untagSignature } from '../../conversation/signature.js';
import { growingMetering } from '../../conversation/stream-rules.js';
import { QUOTE } from '../../wire/bytes.js';
import { changedObjects, isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import { afterColon, needleAt, needleOf } from '../../wire/json-skip.js';
import { queryParameter } from '../../wire/query.js';
import type { Sealer } from '../../wire/seal.js';
import { messagesEffects } from '../effects.js';
import {
  bodyOutputLimit,
  plainEndpoint,
  plainTranslation,
  type TextEndpoint,
  tokenCountOf,
} from '../endpoint.js';
import { anthropicSchemas } from '../schema-rules.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeUsage, firstUsage, lastUsage } from './answer/usage.js';
import { isOwnCompaction } from './compaction-block.js';
import { countTokensConversation, messagesConversation } from './conversation.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { countTokensRequest, messagesRequest } from './request/schema.js';
import { isOwnSearchId, ownSearchMark, searchName } from './search-blocks.js';
import { MessagesDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeContent, judgeEnd, judgeStart, marks } from './stream/rules.js';

/**
 * Marks of tokens, including those in ids of calls, and of searches that another vendor ran; see
 * `Translation.carriedMarks`.
 */
const carriedMarks = [...tokenMarks, carryingMark, ownSearchMark];

/** Translates between the messages protocol and the neutral types. */
export const messagesCodec: TextCodec = {
  rules: {
    protocol: 'messages',
    customTools: 'never',
    topK: 'always',
    reasoning: 'signed',
    callArguments: 'object',
    uniqueCalls: 'conversation',
    firstTurn: 'user',
    instructionsAlone: false,
    cacheBreakpoints: 4,
    partBreakpoints: false,
    prefill: 'option',
    stop: { most: Number.POSITIVE_INFINITY, blank: false },
    toolNames: { longest: 128, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    jsonWord: null,
    ...anthropicSchemas,
    lacks: [
      'seed',
      'presencePenalty',
      'frequencyPenalty',
      'verbosity',
      'detail',
      'formatDescription',
      'serving',
    ],
    search: {
      asked: 'always',
      says: ['allowedDomains', 'blockedDomains', 'location', 'maxUses'],
      choice: 'any',
      name: searchName,
    },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf: (body) => decodeUsage(body.usage),
  encodeAnswer,
  createDecoder: (source) => new MessagesDecoder(source),
  createEncoder,
};

/** `POST /v1/messages` */
export const messages: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'messages',
  upstreamPath: () => '/messages',
  // The SDK's beta client adds this to the query, too.
  upstreamQuery: (query) => (queryParameter(query, 'beta') === 'true' ? '?beta=true' : ''),
  outputLimit: bodyOutputLimit,
  marks,
  judgeStart,
  judgeContent,
  usageAtStart: firstUsage,
  judgeEnd,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    ...plainTranslation,
    codec: messagesCodec,
    schema: messagesRequest,
    carriedMarks,
    mayLackSignature,
    // The word, or a letter of it as an escape.
    thinkingOff: [needleOf('"disabled"'), needleOf('\\u00')],
    restore,
  },
  conversation: messagesConversation,
  hasEffects: messagesEffects,
};

/** `POST /v1/messages/count_tokens` */
export const countTokens = tokenCountOf(messages, {
  upstreamPath: () => '/messages/count_tokens',
  schema: countTokensRequest,
  answer: (tokens) => `{"input_tokens":${tokens}}`,
  conversation: countTokensConversation,
  unwrap: null,
});

const signature = needleOf('"signature"');

/** Tells whether a signature in a body may be empty; see `Translation.mayLackSignature`. */
function mayLackSignature(body: Buffer): boolean {
  const lastAt = signature.whole.length - 1;
  for (let at = needleAt(body, signature, 0); at !== -1; at = needleAt(body, signature, at + 1)) {
    const value = afterColon(body, at + lastAt);
    if (value !== -1 && body[value] === QUOTE && body[value + 1] === QUOTE) return true;
  }
  return false;
}

/**
 * Prepares a body for an upstream of this protocol; see `Translation.restore`. A thinking block with a token gets the
 * signature in it, or becomes the encrypted block that it represents. Removed are another vendor's thinking, blocks
 * with an empty signature, which the vendor refuses (but not every server of its protocol, see
 * `TargetOptions.unsignedThinking`), searches that another vendor ran, and citations of their results. An assistant
 * message with nothing else is removed, too. Ids of calls lose the tokens that they carry.
 */
export function restore(body: JsonObject, _sealer: Sealer, target: TargetOptions): JsonObject | null {
  const messages = changedObjects(body.messages, (message) =>
    restoreMessage(message, target.unsignedThinking),
  );
  if (messages === null) return null;
  const restored = { ...body, messages };
  return target.thinking === 'adaptive' || mayThink(messages) ? restored : withoutThinking(restored);
}

/**
 * With a thinking budget, the vendor requires the message whose calls have just been answered to begin with a thinking
 * block (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
 */
function mayThink(messages: readonly unknown[]): boolean {
  const last = messages.findLastIndex(isOfAssistant);
  const later = messages.slice(last + 1).filter(isObject);
  if (last === -1 || !later.flatMap(blocksOf).some(({ type }) => type === 'tool_result')) return true;
  // The vendor joins messages of one role.
  let begin = last;
  while (isOfAssistant(messages[begin - 1])) begin--;
  const [first] = messages
    .slice(begin, last + 1)
    .filter(isObject)
    .flatMap(blocksOf);
  return first?.type === 'thinking' || first?.type === 'redacted_thinking';
}

function isOfAssistant(message: unknown): boolean {
  return isObject(message) && message.role === 'assistant';
}

function blocksOf({ content }: JsonObject): readonly JsonObject[] {
  return listOf(content).filter(isObject);
}

/**
 * Turns off thinking with a budget, and the context edits that the vendor takes only beside thinking. A thread is not begun either:
 * its next request would have no history that shows the loss. The vendor then knows no such thread, so the SDK sends the
 * whole conversation.
 */
function withoutThinking(body: JsonObject): JsonObject {
  if (!isObject(body.thinking) || body.thinking.type !== 'enabled') return body;
  const { thinking: _, thread, context_management: management, ...others } = body;
  // One that continues has the messages before these.
  const rest = isObject(thread) && thread.type === 'continue' ? { ...others, thread } : others;
  if (!isObject(management) || !Array.isArray(management.edits))
    return management === undefined ? rest : { ...rest, context_management: management };
  const edits = management.edits.filter((edit: unknown) => !(isObject(edit) && clearsThinking(edit)));
  return edits.length === 0 ? rest : { ...rest, context_management: { ...management, edits } };
}

function clearsThinking({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('clear_thinking_');
}

function restoreMessage(message: JsonObject, takesUnsigned: boolean): JsonObject | null {
  if (blocksOf(message).some(isOwnCompaction)) return withSummary(message);
  const searches = ownSearches(message.content);
  const content = changedObjects(message.content, (block) =>
    isUnsigned(block) && takesUnsigned ? block : restoreBlock(block, searches, takesUnsigned),
  );
  if (content === null) return message;
  return content.length === 0 ? null : { ...message, content };
}

/**
 * Replaces a compaction that was made here by a message of the user, since a conversation begins with the user's words.
 * The changes of tools that the summary replaces follow it, as their original blocks.
 */
function withSummary(message: JsonObject): JsonObject {
  const content = blocksOf(message).flatMap((block) =>
    isOwnCompaction(block) ? [{ type: 'text', text: block.content }, ...listOf(block.tool_changes)] : [block],
  );
  return { ...message, role: 'user', content };
}

/** Returns the ids of the searches that another vendor ran. Their results show it. */
function ownSearches(content: unknown): ReadonlySet<unknown> {
  const ids = new Set<unknown>();
  for (const block of listOf(content)) {
    if (!isObject(block) || block.type !== 'web_search_tool_result') continue;
    const results = listOf(block.content);
    const isOwn = results.some((result) => isObject(result) && result.encrypted_content === searchToken);
    // A search without results shows who ran it only by its id.
    if (isOwn || (results.length === 0 && isOwnSearchId(block.tool_use_id))) ids.add(block.tool_use_id);
  }
  return ids;
}

/** Tells whether a block is thinking with an empty signature, as clients write it if it came without one. */
function isUnsigned({ type, signature }: JsonObject): boolean {
  return type === 'thinking' && signature === '';
}

function restoreBlock(
  block: JsonObject,
  searches: ReadonlySet<unknown>,
  takesUnsigned: boolean,
): JsonObject | null {
  if (block.type === 'web_search_tool_result') return searches.has(block.tool_use_id) ? null : block;
  if (block.type === 'server_tool_use') return searches.has(block.id) ? null : block;
  if (block.type === 'text') return withoutOwnCitations(block);
  if (block.type === 'tool_use') return withBareId(block, 'id');
  if (block.type === 'tool_result') return withBareId(block, 'tool_use_id');
  const isRedacted = block.type === 'redacted_thinking';
  if (block.type !== 'thinking' && !isRedacted) return block;
  const token = isRedacted ? block.data : block.signature;
  if (token === '') return null;
  const signature = typeof token === 'string' ? untagSignature(token) : null;
  if (signature === null) return block;
  const { protocol, value, redacted, words = block.thinking, isWordless } = signature;
  if (protocol !== 'messages' || (value === '' && !takesUnsigned)) return null;
  if (redacted) return { type: 'redacted_thinking', data: value };
  return isRedacted || (isWordless && words === '') ? null : { ...block, thinking: words, signature: value };
}

function withoutOwnCitations(block: JsonObject): JsonObject {
  if (!isList(block.citations)) return block;
  const citations = block.citations.filter(
    (citation) => !isObject(citation) || citation.encrypted_index !== searchToken,
  );
  if (citations.length === block.citations.length) return block;
  const { citations: _, ...rest } = block;
  return citations.length === 0 ? rest : { ...rest, citations };
}
