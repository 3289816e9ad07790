import type { Answer, AnswerText } from '../../../conversation/answer.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import { summaryOf } from '../../../conversation/compaction.js';
import type { ReasoningPart, ToolCallPart } from '../../../conversation/request.js';
import { isRedacted, noSignature } from '../../../conversation/signature.js';
import { isCutCall, objectArguments } from '../../../conversation/tool-calls.js';
import { GatewayError } from '../../../errors.js';
import { isObjectText } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { toolUseId } from '../call-ids.js';
import { compactionBlock } from '../compaction-block.js';
import { encodeText } from '../request/encode.js';
import { callBlock, citationText, resultBlock, searchId } from '../search-blocks.js';
import { encodeFinish } from './finish.js';
import { encodeUsage } from './usage.js';

/**
 * Writes a `message`; see `TextCodec.encodeAnswer`. Of several choices it contains the first.
 * @throws {GatewayError} `upstream_error` for an answer without a choice, and for a compaction without a whole summary
 */
export function encodeAnswer(answer: Answer, context: AnswerContext): string {
  if (context.compaction !== null) return encodeCompaction(answer, context);
  const [choice] = answer.choices;
  if (choice === undefined)
    throw new GatewayError('upstream_error', 'The upstream answered without a message.');
  const { finish } = choice;
  const blocks: string[] = [];
  let calls = 0;
  let searches = 0;
  for (const part of choice.parts) {
    if (part.kind === 'toolCall') {
      const id = toolUseId(part.id, context, calls++);
      const isLast = part === choice.parts.at(-1);
      if (finish !== 'length' || !isCut(part, isLast, context)) blocks.push(encodeCall(part, id));
    } else if (part.kind === 'reasoning') {
      const thinking = encodeThinkingBlock(part, context);
      if (thinking !== null) blocks.push(thinking);
    } else if (part.kind === 'search') {
      const id = searchId(context.id, searches++);
      blocks.push(callBlock(id, part.query), resultBlock(id, part));
    } else if (part.text !== '') {
      blocks.push(part.kind === 'text' ? textBlock(part, context) : encodeText(part.text));
    }
  }
  const sequence = finish === 'stopSequence' ? choice.stopSequence : null;
  return (
    `{${messageHead(context)},"content":[${blocks.join(',')}],"stop_reason":"${encodeFinish(finish, calls > 0)}",` +
    `"stop_sequence":${JSON.stringify(sequence)},"usage":${encodeUsage(answer.usage, searches)}}`
  );
}

function encodeCompaction(answer: Answer, context: AnswerContext): string {
  const summary = summaryOf(answer);
  return (
    `{${messageHead(context)},"content":[${compactionBlock(summary, context.echo)}],"stop_reason":"compaction",` +
    `"stop_sequence":null,"usage":${encodeUsage(answer.usage)}}`
  );
}

function textBlock({ text, citations = [], logprobs }: AnswerText, { lost }: AnswerContext): string {
  if (logprobs !== undefined) lost.add('logprobs');
  if (citations.length === 0) return encodeText(text);
  return `{"type":"text","text":${quoted(text)},"citations":[${citations.map(citationText).join()}]}`;
}

/** Returns the members with which an answer begins, streamed or not. */
export function messageHead({ id, model }: AnswerContext): string {
  return `"id":"msg_${id}","type":"message","role":"assistant","model":${JSON.stringify(model)}`;
}

/**
 * Writes reasoning of any protocol as a thinking block, whose signature is the token for the client to carry. Reasoning
 * without text becomes an encrypted block.
 */
function encodeThinkingBlock(
  { text, signature }: ReasoningPart,
  { showReasoning }: AnswerContext,
): string | null {
  const thinking = showReasoning ? text : '';
  if (thinking === '' && signature === null) return null;
  if (thinking === '' && signature !== null && isRedacted(signature)) return redactedBlock(signature);
  return `{"type":"thinking","thinking":${quoted(thinking)},"signature":${JSON.stringify(signature ?? noSignature)}}`;
}

/** Writes an encrypted block, which the client carries and does not show. */
export function redactedBlock(token: string): string {
  return `{"type":"redacted_thinking","data":${JSON.stringify(token)}}`;
}

/** Tells whether a call of an answer that reached its limit of tokens is incomplete: it is then left out. */
function isCut(call: ToolCallPart, isLast: boolean, { tools }: AnswerContext): boolean {
  return isLast ? isCutCall(call, tools) : !isObjectText(call.input);
}

function encodeCall({ name, input }: ToolCallPart, id: string): string {
  const args = objectArguments(input);
  return `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${args}}`;
}
