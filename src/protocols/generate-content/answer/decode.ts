import type { Answer, AnswerChoice, AnswerPart, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerSource } from '../../../conversation/codec.js';
import { tagSignature } from '../../../conversation/signature.js';
import { withCharges } from '../../../conversation/usage.js';
import { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, listOf, numberOrNull, textOf, textOrNull } from '../../../wire/json.js';
import { GroundingReader } from '../grounding-decode.js';
import { decodeLogprobs } from '../logprobs.js';
import { addReasoning } from '../reasoning.js';
import { upstreamError } from '../upstream-error.js';
import { decodeFinish, failedCandidateError, isReason } from './finish.js';
import { decodeUsage } from './usage.js';

/**
 * Reads a response; see `TextCodec.decodeAnswer`. Members of a wrong type count as absent. Images, and code that the
 * vendor ran, are dropped.
 * @throws {GatewayError} `upstream_error` for a body without any candidate, for one whose model failed and has no
 * content, or for the error that its `error` reports
 */
export function decodeAnswer(body: JsonObject, source: AnswerSource): Answer {
  if (isObject(body.error)) throw upstreamError(body.error);
  const candidates = candidatesOf(body);
  if (candidates.length === 0) {
    if (!isBlocked(body))
      throw new GatewayError('upstream_error', 'The upstream answered without a candidate.');
    return {
      choices: [{ parts: [], finish: 'filtered', stopSequence: null }],
      usage: decodeUsage(body.usageMetadata),
    };
  }
  candidates.sort((one, other) => (numberOrNull(one.index) ?? 0) - (numberOrNull(other.index) ?? 0));
  const choices = candidates.map((candidate) => decodeCandidate(candidate, source));
  if (choices.every(saysNothing)) {
    const failure = candidates.map(failedCandidateError).find((each) => each !== null);
    if (failure !== undefined) throw failure;
  }
  const usage = decodeUsage(body.usageMetadata);
  const searches = choices.flatMap(({ parts }) => parts).filter(({ kind }) => kind === 'search').length;
  return { choices, usage: usage === null ? null : withCharges(usage, { searches }) };
}

/** Tells whether a choice has no content. A conversation cannot continue from thoughts alone. */
function saysNothing({ parts }: AnswerChoice): boolean {
  return parts.every(({ kind }) => kind === 'reasoning');
}

/** Returns the candidates of a response, or an empty list. */
export function candidatesOf({ candidates }: JsonObject): JsonObject[] {
  return listOf(candidates).filter(isObject);
}

/** Returns the parts of a candidate, or an empty list. */
export function partsOf({ content }: JsonObject): JsonObject[] {
  return isObject(content) ? listOf(content.parts).filter(isObject) : [];
}

/** Tells whether the vendor refused to answer the prompt. */
export function isBlocked({ promptFeedback }: JsonObject): boolean {
  return isObject(promptFeedback) && isReason(promptFeedback.blockReason);
}

/** Returns the tagged signature of a part, or null. */
export function signatureOf(part: JsonObject, { model }: AnswerSource): string | null {
  const value = textOrNull(part.thoughtSignature) || null;
  if (value === null) return null;
  const signature = { protocol: 'generateContent', model, value, redacted: false } as const;
  return tagSignature(isObject(part.functionCall) ? { ...signature, isOfCall: true } : signature);
}

/** Returns the call in a part, or null if there is none. Most models omit ids. */
export function callOf(
  part: JsonObject,
): { readonly id: string; readonly name: string; readonly input: string } | null {
  const call = part.functionCall;
  if (!isObject(call) || typeof call.name !== 'string' || call.name === '') return null;
  const input = isObject(call.args) ? JSON.stringify(call.args) : '{}';
  return { id: textOf(call.id), name: call.name, input };
}

function decodeCandidate(candidate: JsonObject, source: AnswerSource): AnswerChoice {
  const parts: AnswerPart[] = [];
  const grounding = new GroundingReader(source);
  for (const part of partsOf(candidate)) {
    addPart(parts, part, source);
    grounding.addPart(part.thought === true ? '' : textOf(part.text));
  }
  addLogprobs(parts, candidate.logprobsResult);
  const citations = grounding.read(candidate.groundingMetadata);
  if (citations.length > 0) addCitations(parts, citations);
  parts.push(...grounding.searches());
  const hasCalls = parts.some((part) => part.kind === 'toolCall');
  return { parts, finish: decodeFinish(candidate.finishReason, hasCalls), stopSequence: null };
}

function addPart(parts: AnswerPart[], part: JsonObject, source: AnswerSource): void {
  const signature = signatureOf(part, source);
  const text = textOf(part.text);
  if (part.thought === true) {
    addReasoning(parts, text, signature);
    return;
  }
  // A part carries the signature of the reasoning before it.
  if (signature !== null) addReasoning(parts, '', signature);
  const call = callOf(part);
  if (call !== null) parts.push({ kind: 'toolCall', ...call, custom: false, at: '' });
  else if (text !== '') addText(parts, text);
  else noteLostParts(part, source);
}

/** Parts that the vendor's own tools leave in a conversation. */
const servedParts = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'];
/** Parts without an equivalent in other protocols: media, and the work of the vendor's own tools. */
const otherParts = ['inlineData', 'fileData', 'audioTranscription', ...servedParts];

export function noteLostParts(part: JsonObject, { lost }: AnswerSource): void {
  for (const name of otherParts) if (isObject(part[name])) lost.add(name);
}

/** @param citations with their positions in all texts of the candidate: each is added to the text in which it begins */
function addCitations(parts: AnswerPart[], citations: readonly UrlCitation[]): void {
  let start = 0;
  parts.forEach((part, index) => {
    if (part.kind !== 'text') return;
    const end = start + part.text.length;
    const offset = start;
    const own = citations
      .filter((each) => each.start >= offset && each.start < end)
      .map((each) => ({ ...each, start: each.start - offset, end: Math.min(each.end, end) - offset }));
    if (own.length > 0) parts[index] = { ...part, citations: own };
    start = end;
  });
}

function addText(parts: AnswerPart[], text: string): void {
  const last = parts.at(-1);
  if (last?.kind === 'text') parts[parts.length - 1] = { kind: 'text', text: last.text + text };
  else parts.push({ kind: 'text', text });
}

/** Adds the log probabilities, which the protocol has for the candidate as a whole, to its first text. */
function addLogprobs(parts: AnswerPart[], result: unknown): void {
  const logprobs = decodeLogprobs(result);
  if (logprobs === null) return;
  const index = parts.findIndex((part) => part.kind === 'text');
  const text = parts[index];
  if (text?.kind === 'text') parts[index] = { ...text, logprobs };
}
