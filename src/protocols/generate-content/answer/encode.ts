import type {
  Answer,
  AnswerChoice,
  AnswerPart,
  AnswerText,
  TokenLogprob,
} from '../../../conversation/answer.js';
import { answerCallId } from '../../../conversation/call-id.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import { GroundingWriter } from '../grounding-encode.js';
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

function isCited(parts: readonly AnswerPart[]): boolean {
  return parts.some((part) => part.kind === 'text' && part.citations !== undefined);
}

/**
 * Of an answer whose texts name sources, texts that follow each other become one: clients take places in a part for
 * places in all of the text.
 */
function withJoinedTexts(parts: readonly AnswerPart[]): AnswerPart[] {
  const joined: AnswerPart[] = [];
  let last = -1;
  for (const part of parts) {
    const before = joined[last];
    if (part.kind === 'text' && before?.kind === 'text') joined[last] = joinedTexts(before, part);
    else if (part.kind === 'search') joined.push(part);
    else last = joined.push(part) - 1;
  }
  return joined;
}

function joinedTexts(one: AnswerText, next: AnswerText): AnswerText {
  const offset = one.text.length;
  const moved = (next.citations ?? []).map((each) => ({
    ...each,
    start: each.start + offset,
    end: each.end + offset,
  }));
  const logprobs = [...(one.logprobs ?? []), ...(next.logprobs ?? [])];
  return {
    kind: 'text',
    text: one.text + next.text,
    citations: [...(one.citations ?? []), ...moved],
    ...(logprobs.length === 0 ? {} : { logprobs }),
  };
}

function encodeChoice(
  { parts, finish, stopSequence }: AnswerChoice,
  index: number,
  context: AnswerContext,
): string {
  const written: string[] = [];
  const logprobs: TokenLogprob[] = [];
  let signature: string | null = null;
  let calls = 0;
  let textLength = 0;
  const grounding = new GroundingWriter(true, context.lost);
  for (const part of isCited(parts) ? withJoinedTexts(parts) : parts) {
    if (part.kind === 'reasoning') {
      if (signature !== null) written.push(textPart('', signature));
      if (context.showReasoning && part.text !== '') written.push(thoughtPart(part.text));
      signature = part.signature;
      continue;
    }
    if (part.kind === 'search') {
      grounding.addSearch(part);
      continue;
    }
    if (part.kind === 'toolCall') {
      written.push(callPart({ ...part, id: answerCallId(part.id, context, index, calls++) }, signature));
    } else {
      if (part.kind === 'text') {
        if (part.logprobs !== undefined) logprobs.push(...part.logprobs);
        for (const citation of part.citations ?? [])
          grounding.addCitation({
            ...citation,
            start: citation.start + textLength,
            end: citation.end + textLength,
          });
      }
      textLength += part.text.length;
      grounding.addText(part.text);
      written.push(textPart(part.text, signature));
    }
    signature = null;
  }
  if (finish === 'stopSequence' && stopSequence !== null) context.lost?.add('stop_sequence');
  if (signature !== null || written.length === 0) written.push(textPart('', signature));
  const probabilities = logprobs.length > 0 ? `,"logprobsResult":${encodeLogprobs(logprobs)}` : '';
  return (
    `{"content":{"role":"model","parts":[${written.join()}]},` +
    `"finishReason":"${encodeFinish(finish)}","index":${index}${probabilities}${grounding.text()}}`
  );
}
