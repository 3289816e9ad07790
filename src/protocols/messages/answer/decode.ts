import type { Answer, AnswerPart, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerSource } from '../../../conversation/codec.js';
import { tagSignature } from '../../../conversation/signature.js';
import { resultsIn } from '../../../conversation/web-search.js';
import { GatewayError } from '../../../errors.js';
import { isList, isObject, type JsonObject, listOf, textOf, textOrNull } from '../../../wire/json.js';
import { isSearchCall, queryOf, sourceOf } from '../search-blocks.js';
import { nameOfBlock } from '../server-blocks.js';
import { upstreamError } from '../upstream-error.js';
import { decodeFinish } from './finish.js';
import { decodeUsage } from './usage.js';

/**
 * Reads a `message`; see `TextCodec.decodeAnswer`. Leaves out blocks of tools that the upstream ran, except web
 * searches, and citations of anything else.
 * @throws {GatewayError} `upstream_error` for a body without content, or the error that its `error` reports
 */
export function decodeAnswer(body: JsonObject, source: AnswerSource): Answer {
  if (isObject(body.error)) throw upstreamError(body);
  const { content } = body;
  if (!isList(content)) throw new GatewayError('upstream_error', 'The upstream answered without a message.');
  const parts: AnswerPart[] = [];
  /** Queries of the searches, by the ids of the calls. */
  const queries = new Map<unknown, string>();
  for (const block of content) {
    if (isObject(block) && isSearchCall(block)) {
      queries.set(block.id, queryOf(block.input));
      continue;
    }
    const part = isObject(block) ? decodeBlock(block, queries, source) : null;
    if (part !== null) parts.push(part);
  }
  const hasCalls = parts.some(({ kind }) => kind === 'toolCall');
  const choice = {
    parts,
    finish: decodeFinish(body.stop_reason, hasCalls),
    stopSequence: textOrNull(body.stop_sequence),
  };
  return { choices: [choice], usage: decodeUsage(body.usage) };
}

/** Returns the token in which a client carries a signature of this protocol, or encrypted thinking. */
export function tagMessagesSignature(value: string, redacted: boolean, { model }: AnswerSource): string {
  return tagSignature({ protocol: 'messages', model, value, redacted });
}

/** Returns the JSON text of a call's input in a block; empty if there is none. */
export function inputText(input: unknown): string {
  return isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
}

function decodeBlock(
  block: JsonObject,
  queries: ReadonlyMap<unknown, string>,
  source: AnswerSource,
): AnswerPart | null {
  switch (block.type) {
    case 'text': {
      const text = textOf(block.text);
      return text === ''
        ? null
        : { kind: 'text', text, citations: citationsOn(text, block.citations, source) };
    }
    case 'thinking': {
      const text = textOf(block.thinking);
      const value = textOf(block.signature);
      if (text === '' && value === '') return null;
      return {
        kind: 'reasoning',
        text,
        signature:
          value === '' && !source.unsignedThinking ? null : tagMessagesSignature(value, false, source),
      };
    }
    case 'redacted_thinking': {
      const value = textOf(block.data);
      return value === ''
        ? null
        : { kind: 'reasoning', text: '', signature: tagMessagesSignature(value, true, source) };
    }
    case 'tool_use': {
      // A call without a name is ignored: no client could answer it.
      const name = textOf(block.name);
      if (name === '') return null;
      const input = inputText(block.input) || '{}';
      return { kind: 'toolCall', id: textOf(block.id), name, input, custom: false, at: '' };
    }
    case 'web_search_tool_result':
      return {
        kind: 'search',
        query: queries.get(block.tool_use_id) ?? '',
        results: resultsIn(block.content),
      };
    default:
      if (typeof block.type === 'string') source.lost.add(nameOfBlock(block.type));
      return null;
  }
}

/** Reads the citations of a text. Each of them cites the whole text. */
function citationsOn(text: string, citations: unknown, { lost }: AnswerSource): UrlCitation[] | undefined {
  const found: UrlCitation[] = [];
  for (const citation of listOf(citations)) {
    const source = sourceOf(citation);
    if (source === null) lost.add('citations');
    else found.push({ start: 0, end: text.length, ...source });
  }
  return found.length === 0 ? undefined : found;
}
