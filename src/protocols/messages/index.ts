import type { TextCodec } from '../../conversation/codec.js';
import { estimateTokens } from '../../conversation/estimate-usage.js';
import { openSignature } from '../../conversation/signature.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { queryParameter } from '../../wire/query.js';
import { messagesOnce, never } from '../once.js';
import { bodyOutputLimit, type Endpoint } from '../protocol.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { firstUsage, lastUsage } from './answer/usage.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { createDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks } from './stream/rules.js';

/**
 * Makes a body fit for an upstream of this protocol; see `Translation.restore`. A thinking block with a token gets the
 * signature that is in it, or becomes the encrypted block that it stands for; another vendor's is left out, and so is
 * a message of the assistant that had nothing else.
 */
function restore(body: JsonObject): JsonObject | null {
  const messages = changed(body.messages, restoreMessage);
  return messages === null ? null : { ...body, messages };
}

/**
 * @param change gives an entry as it is to be, the same one where nothing is to do, or null to leave it out
 * @returns the list with what was changed, or null for one without change, or what is no list
 */
function changed(list: unknown, change: (entry: JsonObject) => JsonObject | null): unknown[] | null {
  if (!Array.isArray(list)) return null;
  const entries: unknown[] = [];
  let isChanged = false;
  for (const entry of list as readonly unknown[]) {
    const next = isObject(entry) ? change(entry) : entry;
    isChanged ||= next !== entry;
    if (next !== null || entry === null) entries.push(next);
  }
  return isChanged ? entries : null;
}

function restoreMessage(message: JsonObject): JsonObject | null {
  const content = changed(message.content, restoreBlock);
  if (content === null) return message;
  return content.length === 0 ? null : { ...message, content };
}

function restoreBlock(block: JsonObject): JsonObject | null {
  const isRedacted = block.type === 'redacted_thinking';
  if (block.type !== 'thinking' && !isRedacted) return block;
  const token = isRedacted ? block.data : block.signature;
  const signature = typeof token === 'string' ? openSignature(token) : null;
  if (signature === null) return block;
  const { protocol, value, redacted } = signature;
  if (protocol !== 'messages') return null;
  if (redacted) return { type: 'redacted_thinking', data: value };
  return isRedacted ? null : { ...block, signature: value };
}

/** The messages protocol to and from the neutral types. */
export const messagesCodec: TextCodec = {
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  encodeAnswer,
  createDecoder,
  createEncoder,
};

/** `POST /v1/messages` */
export const messages: Endpoint = {
  protocol: 'messages',
  upstreamPath: () => '/messages',
  upstreamQuery: queryOfBeta,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: bodyOutputLimit,
  mayStream: false,
  answersJson: true,
  marks,
  judgeStart,
  usageAtStart: firstUsage,
  marksEnd: null,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: { codec: messagesCodec, mediaByUrl: true, answerHere: null, unwrap: null, restore },
  amender: null,
  once: messagesOnce,
};

/** `POST /v1/messages/count_tokens`. Other protocols have no such question: for their models the answer is an estimate. */
export const countTokens: Endpoint = {
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'messages',
  upstreamPath: () => '/messages/count_tokens',
  upstreamQuery: queryOfBeta,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: {
    codec: messagesCodec,
    mediaByUrl: true,
    answerHere: (request) => `{"input_tokens":${estimateTokens(request)}}`,
    unwrap: null,
    restore,
  },
  amender: null,
  once: never,
};

/** The SDK's beta client says so in the query too. */
function queryOfBeta(query: string): string {
  return queryParameter(query, 'beta') === 'true' ? '?beta=true' : '';
}
