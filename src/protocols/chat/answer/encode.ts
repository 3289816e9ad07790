import type { Answer, AnswerChoice, AnswerPart, TokenLogprob } from '../../../conversation/answer.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import type { ToolCallPart } from '../../../conversation/request.js';
import { isOfVendor } from '../../../conversation/signature.js';
import { answerCallId } from '../../../conversation/tool-calls.js';
import { quoted } from '../../../wire/quoted.js';
import { encodeCitation, encodeLogprobs } from '../annotations.js';
import { extraContent } from '../carried.js';
import { encodeFinish } from './finish.js';
import { encodeUsage } from './usage.js';

/**
 * Writes a `chat.completion`; see `TextCodec.encodeAnswer`. Reasoning is shown, and calls carry its signatures.
 * OpenRouter's SDK refuses an answer without `system_fingerprint`, which may be null.
 */
export function encodeAnswer(answer: Answer, context: AnswerContext): string {
  let text = `{${answerHead('chat.completion', context)},"choices":[`;
  answer.choices.forEach((choice, index) => {
    if (index > 0) text += ',';
    text += encodeChoice(choice, index, context);
  });
  text += ']';
  if (answer.usage !== null) text += `,"usage":${encodeUsage(answer.usage)}`;
  return `${text},"system_fingerprint":null}`;
}

/** Returns the members with which an answer and each of its chunks begin. */
export function answerHead(object: string, { id, created, model }: AnswerContext): string {
  return `"id":"chatcmpl-${id}","object":"${object}","created":${created},"model":${JSON.stringify(model)}`;
}

/** Tells whether a part has a signature that only a call could carry. */
function isSignedByVendor(part: AnswerPart): boolean {
  return part.kind === 'reasoning' && isOfVendor(part.signature);
}

function encodeChoice(
  { parts, finish, stopSequence }: AnswerChoice,
  index: number,
  context: AnswerContext,
): string {
  let content = '';
  let refusal = '';
  let reasoning = '';
  let annotations = '';
  let calls = '';
  let callCount = 0;
  let functionCall = '';
  const logprobs: TokenLogprob[] = [];
  for (const part of parts) {
    if (part.kind === 'text') {
      for (const citation of part.citations ?? [])
        annotations += `${annotations === '' ? '' : ','}${encodeCitation(citation, content.length)}`;
      if (part.logprobs !== undefined) logprobs.push(...part.logprobs);
      content += part.text;
    } else if (part.kind === 'refusal') {
      refusal += part.text;
    } else if (part.kind === 'reasoning') {
      reasoning += part.text;
    } else if (part.kind === 'search') {
      context.lost.add('web_search_call');
    } else if (context.functionForm) {
      if (functionCall === '') functionCall = encodeFunctionCall(part);
      else context.lost.add('tool_calls');
    } else {
      calls += `${calls === '' ? '' : ','}${encodeCall(part, answerCallId(part.id, context, index, callCount++))}`;
    }
  }
  const hasCalls = calls !== '' || functionCall !== '';
  const noContent = content === '' && (hasCalls || refusal !== '');
  let message = `{"role":"assistant","content":${noContent ? 'null' : quoted(content)}`;
  message += `,"refusal":${refusal === '' ? 'null' : JSON.stringify(refusal)}`;
  if (annotations !== '') message += `,"annotations":[${annotations}]`;
  if (reasoning !== '') message += `,"reasoning_content":${quoted(reasoning)}`;
  if (calls !== '') message += `,"tool_calls":[${calls}]`;
  if (functionCall !== '') message += `,"function_call":${functionCall}`;
  if (finish === 'stopSequence' && stopSequence !== null) context.lost.add('stop_sequence');
  if (calls === '' && parts.some(isSignedByVendor)) context.lost.add('signature');
  const probabilities = logprobs.length > 0 ? encodeLogprobs(logprobs) : 'null';
  const reason = encodeFinish(finish, hasCalls, context);
  return `{"index":${index},"message":${message}},"logprobs":${probabilities},"finish_reason":"${reason}"}`;
}

function encodeCall({ name, input, custom, signature }: ToolCallPart, id: string): string {
  const type = custom ? 'custom' : 'function';
  const inputKey = custom ? 'input' : 'arguments';
  return (
    `{"id":${JSON.stringify(id)},"type":"${type}",` +
    `"${type}":{"name":${JSON.stringify(name)},"${inputKey}":${quoted(input)}}${extraContent(signature)}}`
  );
}

/** Writes a call in the older form, which has no place for an id and a signature. */
function encodeFunctionCall({ name, input }: ToolCallPart): string {
  return `{"name":${JSON.stringify(name)},"arguments":${quoted(input)}}`;
}
