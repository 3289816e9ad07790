import type { TextCodec } from '../../conversation/codec.js';
import { estimateTokens } from '../../conversation/estimate-usage.js';
import { openSignature } from '../../conversation/signature.js';
import { growingMetering, reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { outputMembers } from '../../schema/accept.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { generateContentOnce, never } from '../once.js';
import type { Endpoint } from '../protocol.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { lastUsage } from './answer/usage.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { keyOf, memberOf, snakeCase } from './spelling.js';
import { createDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';
import { judgeEnd, judgeStart, marks, marksEnd } from './stream/rules.js';

const wrapper = 'generateContentRequest';
const signatureKeys = ['thoughtSignature', snakeCase('thoughtSignature')] as const;

/** A part as it goes to the vendor: null for one that is left out. */
interface RestoredPart {
  readonly part: JsonObject | null;
  /** Another vendor has signed it. */
  readonly isForeign: boolean;
}

/**
 * Makes a body fit for an upstream of the protocol: its vendor's signatures are taken out of their tokens, and what
 * another vendor signed loses its signature and the thoughts that it is for; see `Translation.restore`. Bodies of
 * `countTokens` may have the request in a member.
 */
function restore(body: JsonObject): JsonObject | null {
  const wrapped = memberOf(body, wrapper);
  if (isObject(wrapped)) {
    const restored = restore(wrapped);
    return restored === null ? null : { ...body, [keyOf(body, wrapper)]: restored };
  }
  if (!Array.isArray(body.contents)) return null;
  let isChanged = false;
  const contents: unknown[] = [];
  for (const content of body.contents as readonly unknown[]) {
    const restored = isObject(content) ? restoreContent(content) : content;
    if (restored !== content) isChanged = true;
    if (restored !== null || content === null) contents.push(restored);
  }
  return isChanged ? { ...body, contents } : null;
}

/** @returns the content itself when there is nothing to do, and null when nothing is left of it */
function restoreContent(content: JsonObject): JsonObject | null {
  const { parts } = content;
  if (isObject(parts)) {
    const { part } = restorePart(parts);
    if (part === parts) return content;
    return part === null ? null : { ...content, parts: part };
  }
  if (!Array.isArray(parts)) return content;
  let isChanged = false;
  const restored: unknown[] = [];
  for (const given of parts as readonly unknown[]) {
    if (!isObject(given)) {
      restored.push(given);
      continue;
    }
    const { part, isForeign } = restorePart(given);
    if (part !== given) isChanged = true;
    if (isForeign) dropThoughts(restored);
    if (part !== null) restored.push(part);
  }
  if (!isChanged) return content;
  return restored.length === 0 ? null : { ...content, parts: restored };
}

/** A signature stands on the part after the reasoning that it is for: takes that from the end of the parts. */
function dropThoughts(parts: unknown[]): void {
  for (let last = parts.at(-1); isObject(last) && last.thought === true; last = parts.at(-1)) {
    if (signatureKeys.some((key) => Object.hasOwn(last as JsonObject, key))) return;
    parts.pop();
  }
}

function restorePart(part: JsonObject): RestoredPart {
  let restored = part;
  let isForeign = false;
  for (const key of signatureKeys) {
    const token = part[key];
    const signature = typeof token === 'string' ? openSignature(token) : null;
    if (signature === null) continue;
    if (signature.protocol === 'generateContent') {
      restored = { ...restored, [key]: signature.value };
    } else {
      isForeign = true;
      const { [key]: _, ...unsigned } = restored;
      restored = unsigned;
    }
  }
  if (isForeign && (part.thought === true || saysNothing(restored))) return { part: null, isForeign };
  return { part: restored, isForeign };
}

/** True for a part that was there for its signature alone. */
function saysNothing(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || (key === 'text' && part[key] === ''));
}

/** The protocol's translation to and from the neutral types. */
export const generateContentCodec: TextCodec = {
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  encodeAnswer,
  createDecoder,
  createEncoder,
};

/** `POST /v1beta/models/{model}:generateContent`, and `:streamGenerateContent` for streams. */
export const generateContent: Endpoint = {
  protocol: 'generateContent',
  upstreamPath: (model, stream) =>
    modelPath(model) + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
  upstreamQuery: null,
  modelInBody: false,
  usageOnRequest: false,
  outputLimit: {
    within: outputMembers.configs,
    fields: ['maxOutputTokens', 'max_output_tokens'],
    choices: ['candidateCount', 'candidate_count'],
    each: null,
  },
  mayStream: false,
  answersJson: true,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  metering: growingMetering,
  translation: {
    codec: generateContentCodec,
    mediaByUrl: false,
    answerHere: null,
    unwrap: null,
    restore,
  },
  amender: null,
  once: generateContentOnce,
};

/** `POST /v1beta/models/{model}:countTokens`. */
export const countTokens: Endpoint = {
  ...wholeAnswers(() => null, reportedMetering),
  protocol: 'generateContent',
  upstreamPath: (model) => `${modelPath(model)}:countTokens`,
  upstreamQuery: null,
  modelInBody: false,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: {
    codec: generateContentCodec,
    mediaByUrl: false,
    answerHere: (request) => `{"totalTokens":${estimateTokens(request)}}`,
    unwrap: wrappedRequest,
    restore,
  },
  amender: null,
  once: never,
};

/** Path of a model, whose name may begin with the collection that it is in. */
function modelPath(model: string): string {
  const path = model.split('/').map(encodeURIComponent).join('/');
  return model.startsWith('models/') || model.startsWith('tunedModels/') ? `/${path}` : `/models/${path}`;
}

/** What a question is about that asks with a whole request in one member. */
function wrappedRequest(body: JsonObject): JsonObject {
  const wrapped = memberOf(body, 'generateContentRequest');
  return isObject(wrapped) ? wrapped : body;
}
