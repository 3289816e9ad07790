import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import type { TextCodec } from '../../conversation/codec.js';
import { tokenMarks, untagSignature } from '../../conversation/signature.js';
import { conversationMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { changedObjects, type JsonObject, textOf, textOrNull } from '../../wire/json.js';
import { type Sealer, sealMark } from '../../wire/seal.js';
import { noEffects, responsesEffects } from '../effects.js';
import {
  bodyOutputLimit,
  type Endpoint,
  plainEndpoint,
  plainTranslation,
  type TextEndpoint,
  type Translation,
  tokenCountOf,
} from '../endpoint.js';
import { openaiSchemas } from '../schema-rules.js';
import { decodeAnswer, usageOf } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { usageOfAnswer } from './answer/usage.js';
import { noteBytes, noteCharges } from './charges.js';
import { isCompaction, openCompaction } from './compact.js';
import { compactConversation, responsesConversation } from './conversation.js';
import { answerOfItem, ownItemMark } from './made-id.js';
import { openReasoning } from './reasoning.js';
import { decodeCompactRequest, decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { compactRequest, inputTokensRequest, responsesRequest } from './request/schema.js';
import { ResponseDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import {
  judgeContent,
  judgeEnd,
  judgeStart,
  lastNumber,
  marks,
  marksEnd,
  openedBy,
  repeat,
} from './stream/rules.js';

/**
 * Marks of tokens, including those in ids of calls, of compactions, and of other vendors' searches and reasoning; see
 * `Translation.carriedMarks`.
 */
const carriedMarks = [...tokenMarks, carryingMark, sealMark, ownItemMark];

/** Translates between the responses protocol and the neutral types. */
export const responsesCodec: TextCodec = {
  rules: {
    protocol: 'responses',
    customTools: 'always',
    topK: 'never',
    reasoning: 'encrypted',
    callArguments: 'text',
    uniqueCalls: 'conversation',
    firstTurn: 'any',
    instructionsAlone: false,
    cacheBreakpoints: 0,
    partBreakpoints: true,
    prefill: 'never',
    stop: { most: 0, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z0-9_-]+$/ },
    outputRoot: 'object',
    jsonWord: 'turns',
    ...openaiSchemas,
    lacks: ['seed', 'presencePenalty', 'frequencyPenalty'],
    search: {
      asked: 'always',
      says: ['allowedDomains', 'location', 'maxUses', 'contextSize', 'live'],
      choice: 'any',
      name: null,
    },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf,
  encodeAnswer,
  createDecoder: (source) => new ResponseDecoder(source),
  createEncoder,
};

const translation: Translation = {
  ...plainTranslation,
  codec: responsesCodec,
  schema: responsesRequest,
  carriedMarks,
  restore,
};

/** `POST /v1/responses` */
export const responses: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'responses',
  upstreamPath: () => '/responses',
  outputLimit: bodyOutputLimit,
  marks,
  judgeStart,
  judgeContent,
  openedBy,
  repeat,
  marksEnd,
  lastNumber,
  judgeEnd,
  usageOf: usageOfAnswer,
  wholeBytes: noteBytes,
  noteCharges,
  metering: conversationMetering,
  translation,
  conversation: responsesConversation,
  hasEffects: responsesEffects,
  answersLater: true,
};

/** `POST /v1/responses/compact`. Its body requests a compaction. */
export const compactResponses: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(usageOfAnswer, conversationMetering, judgeStart),
  protocol: 'responses',
  upstreamPath: () => '/responses/compact',
  mayLack: true,
  translation: {
    ...translation,
    codec: { ...responsesCodec, decodeRequest: decodeCompactRequest },
    schema: compactRequest,
  },
  conversation: compactConversation,
  hasEffects: noEffects,
};

/**
 * `POST /v1/responses/input_tokens`
 * (https://platform.openai.com/docs/api-reference/responses/input-tokens).
 */
export const countInputTokens = tokenCountOf(responses, {
  upstreamPath: () => '/responses/input_tokens',
  schema: inputTokensRequest,
  answer: (tokens) => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
  conversation: compactConversation,
  unwrap: null,
});

/** Prefix of a text that was sealed here. */
const sealTag = sealMark.whole.toString('latin1', 1);

/**
 * Restores in a body what a client carries for the gateway; see `Translation.restore`. Reasoning gets the id and the
 * encrypted text of its upstream, or is removed if no upstream of this protocol made it. A compaction that was made
 * here becomes a message of the user. Removed are a compaction that cannot be opened, which no upstream could read
 * either, and a search that another vendor ran. Ids of calls lose the tokens that they carry.
 */
function restore(body: JsonObject, sealer: Sealer): JsonObject | null {
  const input = changedObjects(body.input, (item) => restoreItem(item, sealer));
  return input === null ? null : { ...body, input };
}

/** @returns the same item if there is nothing to restore, or null if it has to be removed */
function restoreItem(item: JsonObject, sealer: Sealer): JsonObject | null {
  const isOwn = answerOfItem(textOf(item.id)) !== null;
  if (item.type === 'web_search_call' && isOwn) return null;
  // Some clients write the id of the call as that of the item as well (`@ai-sdk/xai`).
  if (typeof item.call_id === 'string') return withBareId(withBareId(item, 'call_id'), 'id');
  const carried = textOrNull(item.encrypted_content);
  // The vendor looks up reasoning that is not encrypted by its id, and answers 404 if it did not make it.
  if (item.type === 'reasoning' && isOwn && (carried === null || untagSignature(carried) === null))
    return null;
  if (carried === null) return item;
  if (item.type === 'reasoning') return restoreReasoning(item, carried);
  if (!isCompaction(item) || !carried.startsWith(sealTag)) return item;
  const text = openCompaction(item, sealer);
  if (text === null) return null;
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
}

function restoreReasoning(item: JsonObject, token: string): JsonObject | null {
  if (untagSignature(token) === null) return item;
  const opened = openReasoning(token, null);
  if (opened === null) return null;
  const { id, content } = opened;
  const members = Object.entries(item).flatMap(([key, value]): [string, unknown][] => {
    if (key === 'encrypted_content') return [[key, content]];
    if (key !== 'id') return [[key, value]];
    return id === '' ? [] : [[key, id]];
  });
  if (id !== '' && !Object.hasOwn(item, 'id')) members.push(['id', id]);
  return Object.fromEntries(members);
}
