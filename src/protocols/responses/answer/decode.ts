import type { Answer, AnswerPart, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerSource } from '../../../conversation/codec.js';
import { accountOf } from '../../../conversation/signature.js';
import type { Usage } from '../../../conversation/usage.js';
import { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, listOf, textOf, textOrNull } from '../../../wire/json.js';
import { citationIn, logprobsIn } from '../../openai-shared/text-details.js';
import { decodeUsage } from '../charges.js';
import { nameOfItem } from '../left-out.js';
import { tagReasoning } from '../reasoning.js';
import { joinedTexts } from '../request/decode.js';
import { isSearch, searchesOf } from '../search-item.js';
import { upstreamError } from '../upstream-error.js';
import { decodeFinish } from './finish.js';

/* Reads an upstream's answer. Nothing in it has been checked: values of a wrong type are left out. */

/**
 * Decodes a whole answer of an upstream; see `TextCodec.decodeAnswer`.
 * @throws {GatewayError} for an answer that failed or does not belong to the protocol
 */
export function decodeAnswer(body: JsonObject, source: AnswerSource): Answer {
  if (isObject(body.error) || body.status === 'failed') throw upstreamError(body);
  if (!Array.isArray(body.output)) {
    throw new GatewayError('upstream_error', "The upstream's answer is not of the responses protocol.");
  }
  if (body.status === 'cancelled' || body.status === 'queued' || body.status === 'in_progress') {
    throw new GatewayError('upstream_error', `The upstream's answer is not complete: it is ${body.status}.`);
  }
  const parts = body.output.flatMap((item, index) => partsOfItem(item, source, `output[${index}]`));
  const hasCalls = parts.some(({ kind }) => kind === 'toolCall');
  return {
    choices: [{ parts, finish: decodeFinish(body, hasCalls), stopSequence: null }],
    usage: usageOf(body),
  };
}

/** See `TextCodec.usageOf`. */
export function usageOf(body: JsonObject): Usage | null {
  return decodeUsage(body, listOf(body.output).filter(isSearch).length);
}

/**
 * Returns the parts of an answer for an item of `output`. Of tools that the upstream ran itself, only web searches give
 * parts.
 * @param source the maker of the answer
 * @param at path of the item in the answer
 */
export function partsOfItem(item: unknown, source: AnswerSource, at: string): AnswerPart[] {
  if (!isObject(item)) return [];
  switch (item.type) {
    case 'message':
      return listOf(item.content).flatMap((part) => contentParts(part, source));
    case 'function_call':
    case 'custom_tool_call': {
      const custom = item.type === 'custom_tool_call';
      const name = textOf(item.name);
      return [{ kind: 'toolCall', id: givenCallId(item), name, input: inputOf(item), custom, at }];
    }
    case 'reasoning': {
      const text = joinedTexts(item.summary) || joinedTexts(item.content);
      const signature = signatureOf(item, source);
      return text === '' && signature === null ? [] : [{ kind: 'reasoning', text, signature }];
    }
    case 'web_search_call':
      return searchesOf(item);
    default:
      source.lost.add(nameOfItem(item.type, 'output'));
      return [];
  }
}

function contentParts(part: unknown, source: AnswerSource): AnswerPart[] {
  if (!isObject(part)) return [];
  if (part.type === 'refusal') return [{ kind: 'refusal', text: textOf(part.refusal) }];
  if (part.type !== 'output_text') return [];
  const citations = citationsOf(part.annotations, source);
  return [{ kind: 'text', text: textOf(part.text), citations, logprobs: logprobsIn(part.logprobs) }];
}

/** Returns the id of a call; empty if the upstream gave none. */
export function givenCallId(item: JsonObject): string {
  return textOrNull(item.call_id) ?? textOf(item.id);
}

/** Returns the arguments of a function call, `{}` if absent, or the free text of a custom tool's call. */
export function inputOf(item: JsonObject): string {
  if (item.type === 'custom_tool_call') return textOf(item.input);
  return textOrNull(item.arguments) || '{}';
}

/** Returns the token for an encrypted reasoning item, or null. */
export function signatureOf(item: JsonObject, source: AnswerSource): string | null {
  const content = textOf(item.encrypted_content);
  return content === '' ? null : tagReasoning({ id: textOf(item.id), content }, accountOf(source));
}

/** Returns the source that an annotation names, or null if it is of another type. */
export function citationOf(annotation: unknown): UrlCitation | null {
  return isObject(annotation) && annotation.type === 'url_citation' ? citationIn(annotation) : null;
}

function citationsOf(annotations: unknown, { lost }: AnswerSource): UrlCitation[] | undefined {
  if (!Array.isArray(annotations) || annotations.length === 0) return undefined;
  const citations = annotations.map(citationOf).filter((citation) => citation !== null);
  if (citations.length < annotations.length) lost.add('annotations');
  return citations.length === 0 ? undefined : citations;
}
