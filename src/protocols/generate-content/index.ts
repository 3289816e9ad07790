import type { TextCodec } from '../../conversation/codec.js';
import { tokenMarks, untagSignature } from '../../conversation/signature.js';
import { type AnswerCharges, growingMetering } from '../../conversation/stream-rules.js';
import { OPEN_BRACE } from '../../wire/bytes.js';
import { changedObjects, isList, isObject, type JsonObject, parseObject } from '../../wire/json.js';
import { textStart } from '../../wire/json-skip.js';
import { outputMembers } from '../../wire/routed-members.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { generateContentEffects } from '../effects.js';
import { plainEndpoint, plainTranslation, type TextEndpoint, tokenCountOf } from '../endpoint.js';
import { modelPath } from '../model-path.js';
import { googleSchemas } from '../schema-rules.js';
import { candidatesOf, decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeUsage, lastUsage } from './answer/usage.js';
import { queriesOf } from './grounding-decode.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest, unsigned } from './request/encode.js';
import { countTokensRequest, generateContentRequest } from './request/schema.js';
import { keyOf, memberOf, snakeCase } from './spelling.js';
import { BlockDecoder } from './stream/decoder.js';
import { BlockEncoder } from './stream/encoder.js';
import { judgeContent, judgeEnd, judgeStart, marks, marksEnd } from './stream/rules.js';

/** A quoted key cannot occur inside a string, which would escape its quotes. */
const groundingKey = Buffer.from('"groundingMetadata"');
/** Most queries of one answer that are counted separately. */
const mostQueries = 1000;

/**
 * Records the queries of an answer, which its usage does not contain
 * (https://ai.google.dev/gemini-api/docs/google-search#pricing); see `StreamRules.noteCharges`.
 */
function noteCharges(run: Buffer, charges: AnswerCharges): void {
  let at = run.indexOf(groundingKey);
  if (at === -1) return;
  if (run[textStart(run)] === OPEN_BRACE) {
    addQueries(run.toString('utf8'), charges);
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    addQueries(parseEvent(run.toString('utf8', start, end)).data ?? '', charges);
    at = run.indexOf(groundingKey, end);
  }
}

function addQueries(text: string, { queries }: AnswerCharges): void {
  for (const { groundingMetadata: metadata } of candidatesOf(parseObject(text) ?? {})) {
    if (!isObject(metadata)) continue;
    for (const query of queriesOf(metadata)) if (queries.size < mostQueries) queries.add(query);
  }
}

/** Translates between the generateContent protocol and the neutral types. */
export const generateContentCodec: TextCodec = {
  rules: {
    protocol: 'generateContent',
    customTools: 'never',
    topK: 'always',
    reasoning: 'signed',
    callArguments: 'object',
    uniqueCalls: 'answer',
    firstTurn: 'noCall',
    instructionsAlone: false,
    cacheBreakpoints: 0,
    partBreakpoints: false,
    prefill: 'always',
    stop: { most: 5, blank: true },
    toolNames: { longest: 64, legal: /^[A-Za-z_][A-Za-z0-9_.:-]*$/ },
    outputRoot: 'any',
    jsonWord: null,
    ...googleSchemas,
    lacks: [
      'verbosity',
      'user',
      'parallelCalls',
      'strict',
      'detail',
      'fileName',
      'formatDescription',
      'serving',
    ],
    search: { asked: 'alone', says: [], choice: 'none', name: null },
  },
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  usageOf: (body) => decodeUsage(body.usageMetadata),
  encodeAnswer,
  createDecoder: (source) => new BlockDecoder(source),
  createEncoder: (context) => new BlockEncoder(context),
};

/** `POST /v1beta/models/{model}:generateContent`, and `:streamGenerateContent` for streams. */
export const generateContent: TextEndpoint = {
  ...plainEndpoint,
  protocol: 'generateContent',
  upstreamPath: (model, stream) =>
    modelPath(model) + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
  modelInBody: false,
  outputLimit: {
    within: outputMembers.configs,
    fields: ['maxOutputTokens', 'max_output_tokens'],
    choices: ['candidateCount', 'candidate_count'],
    each: null,
  },
  marks,
  judgeStart,
  judgeContent,
  marksEnd,
  judgeEnd,
  usageOf: lastUsage,
  noteCharges,
  metering: growingMetering,
  translation: {
    ...plainTranslation,
    codec: generateContentCodec,
    schema: generateContentRequest,
    mediaByUrl: false,
    makesImagesUnasked: true,
    carriedMarks: tokenMarks,
    restore,
  },
  hasEffects: generateContentEffects,
};

/** `POST /v1beta/models/{model}:countTokens` */
export const countTokens = tokenCountOf(generateContent, {
  upstreamPath: (model) => `${modelPath(model)}:countTokens`,
  schema: countTokensRequest,
  answer: (tokens) => `{"totalTokens":${tokens}}`,
  conversation: null,
  unwrap: wrappedRequest,
});

/** Returns the request of a body that counts tokens and has a whole request in one member. */
function wrappedRequest(body: JsonObject): JsonObject {
  const wrapped = memberOf(body, 'generateContentRequest');
  return isObject(wrapped) ? wrapped : body;
}

const wrapper = 'generateContentRequest';
const signatureKeys = ['thoughtSignature', snakeCase('thoughtSignature')] as const;

/** A part as it is sent to the vendor; null for one that is left out. */
interface RestoredPart {
  readonly part: JsonObject | null;
  /** Another vendor signed the part. */
  readonly isForeign: boolean;
}

/**
 * Prepares a body for an upstream of this protocol; see `Translation.restore`. Signatures of its vendor are taken out
 * of their tokens. A part that another vendor signed loses its signature and the thoughts before it. A call without a
 * signature gets a replacement, since the vendor refuses it otherwise. Bodies of `countTokens` may have the request in
 * a member.
 */
function restore(body: JsonObject): JsonObject | null {
  const wrapped = memberOf(body, wrapper);
  if (isObject(wrapped)) {
    const restored = restore(wrapped);
    return restored === null ? null : { ...body, [keyOf(body, wrapper)]: restored };
  }
  const given = isList(body.contents) ? body.contents : [body.contents];
  const contents = changedObjects(given, restoreContent);
  return contents === null ? null : { ...body, contents };
}

/** @returns the content itself if there is nothing to change, and null if nothing of it remains */
function restoreContent(content: JsonObject): JsonObject | null {
  const { parts } = content;
  if (isObject(parts)) {
    const { part } = restorePart(parts);
    if (part === parts) return content;
    return part === null ? null : { ...content, parts: part };
  }
  if (!isList(parts)) return content;
  let isChanged = false;
  const restored: unknown[] = [];
  for (const given of parts) {
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

/** Removes thoughts from the end of the parts: a signature stands on the part after the reasoning that it signs. */
function dropThoughts(parts: unknown[]): void {
  while (isUnsignedThought(parts.at(-1))) parts.pop();
}

function isUnsignedThought(part: unknown): boolean {
  return isObject(part) && part.thought === true && !signatureKeys.some((key) => Object.hasOwn(part, key));
}

function restorePart(part: JsonObject): RestoredPart {
  let restored = part;
  let isForeign = false;
  for (const key of signatureKeys) {
    const token = part[key];
    const signature = typeof token === 'string' ? untagSignature(token) : null;
    if (signature === null) continue;
    if (signature.protocol === 'generateContent' && signature.value !== '') {
      restored = { ...restored, [key]: signature.value };
    } else {
      isForeign = true;
      const { [key]: _, ...rest } = restored;
      restored = isObject(memberOf(part, 'functionCall')) ? { ...rest, [key]: unsigned } : rest;
    }
  }
  if (isForeign && (part.thought === true || saysNothing(restored))) return { part: null, isForeign };
  return { part: restored, isForeign };
}

/** Tells whether a part has nothing but its signature. */
function saysNothing(part: JsonObject): boolean {
  return Object.keys(part).every((key) => part[key] === null || (key === 'text' && part[key] === ''));
}
