import type { Answer, AnswerChoice, TokenLogprob } from '../../../conversation/answer.js';
import { answerCallId } from '../../../conversation/call-id.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import { encodeLogprobs } from '../logprobs.js';
import { callPart, textPart, thoughtPart } from '../parts-encode.js';
import { encodeFinish } from './finish.js';
import { encodeUsage } from './usage.js';

/** What a prompt that was refused is answered with in place of candidates. */
export const blockedPrompt = '"promptFeedback":{"blockReason":"OTHER"}';

/** Writes a response; see `TextCodec.encodeAnswer`. An empty answer that was filtered is a blocked prompt. */
export function encodeAnswer(answer: Answer, context: AnswerContext): string {
  const [first] = answer.choices;
  const blocked = answer.choices.length === 1 && first?.finish === 'filtered' && first.parts.length === 0;
  const outcome = blocked
    ? blockedPrompt
    : `"candidates":[${answer.choices.map((choice, index) => encodeChoice(choice, index, context)).join()}]`;
  const usage = answer.usage === null ? '' : `,"usageMetadata":${encodeUsage(answer.usage)}`;
  return `{${outcome}${usage},${answerEnd(context)}}`;
}

/** The members with which a response and each block of a stream end. */
export function answerEnd({ model, id }: AnswerContext): string {
  return `"modelVersion":${JSON.stringify(model)},"responseId":${JSON.stringify(id)}`;
}

function encodeChoice({ parts, finish }: AnswerChoice, index: number, context: AnswerContext): string {
  const written: string[] = [];
  const logprobs: TokenLogprob[] = [];
  let signature: string | null = null;
  let calls = 0;
  for (const part of parts) {
    if (part.kind === 'reasoning') {
      if (signature !== null) written.push(textPart('', signature));
      if (context.showReasoning && part.text !== '') written.push(thoughtPart(part.text));
      signature = part.signature;
      continue;
    }
    if (part.kind === 'toolCall') {
      written.push(callPart({ ...part, id: answerCallId(part.id, context, index, calls++) }, signature));
    } else {
      if (part.kind === 'text' && part.logprobs !== undefined) logprobs.push(...part.logprobs);
      written.push(textPart(part.text, signature));
    }
    signature = null;
  }
  if (signature !== null || written.length === 0) written.push(textPart('', signature));
  const probabilities = logprobs.length > 0 ? `,"logprobsResult":${encodeLogprobs(logprobs)}` : '';
  return (
    `{"content":{"role":"model","parts":[${written.join()}]},` +
    `"finishReason":"${encodeFinish(finish)}","index":${index}${probabilities}}`
  );
}
