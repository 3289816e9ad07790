import type {
  Answer,
  AnswerChoice,
  AnswerPart,
  AnswerText,
  TokenLogprob,
  UrlCitation,
} from '../../../conversation/answer.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import { noSignature } from '../../../conversation/signature.js';
import { answerCallId, isCutCall } from '../../../conversation/tool-calls.js';
import { GroundingWriter } from '../grounding-encode.js';
import { encodeLogprobs } from '../logprobs.js';
import { callPart, textPart, thoughtPart } from '../parts-encode.js';
import { encodeFinish } from './finish.js';
import { encodeUsage } from './usage.js';

/** Member of an answer that replaces the candidates if the prompt was refused. */
export const blockedPrompt = '"promptFeedback":{"blockReason":"OTHER"}';

/** Writes a response; see `TextCodec.encodeAnswer`. An empty answer that was filtered becomes a blocked prompt. */
export function encodeAnswer(answer: Answer, context: AnswerContext): string {
  const [first] = answer.choices;
  const blocked = answer.choices.length === 1 && first?.finish === 'filtered' && first.parts.length === 0;
  const outcome = blocked
    ? blockedPrompt
    : `"candidates":[${answer.choices.map((choice, index) => encodeChoice(choice, index, context)).join()}]`;
  const usage = answer.usage === null ? '' : `,"usageMetadata":${encodeUsage(answer.usage)}`;
  return `{${outcome}${usage},${answerEnd(context)}}`;
}

/** Returns the members with which a response and each block of a stream end. */
export function answerEnd({ model, id }: Pick<AnswerContext, 'model' | 'id'>): string {
  return `"modelVersion":${JSON.stringify(model)},"responseId":${JSON.stringify(id)}`;
}

function isGrounded(parts: readonly AnswerPart[]): boolean {
  return parts.some(
    (part) => part.kind === 'search' || (part.kind === 'text' && part.citations !== undefined),
  );
}

/**
 * Joins consecutive texts of an answer with searches or sources: clients read positions in a part as positions in the
 * whole text.
 */
function withJoinedTexts(parts: readonly AnswerPart[]): AnswerPart[] {
  const joined: AnswerPart[] = [];
  let open: OpenText | null = null;
  for (const part of parts) {
    if (part.kind === 'text') {
      if (open === null) {
        open = { kind: 'text', text: '', citations: [], logprobs: [] };
        joined.push(open);
      }
      extend(open, part);
      continue;
    }
    // A search writes no part, and does not separate texts.
    if (part.kind !== 'search') open = null;
    joined.push(part);
  }
  return joined;
}

/** A text to which others may be added. */
interface OpenText extends AnswerText {
  text: string;
  readonly citations: UrlCitation[];
  readonly logprobs: TokenLogprob[];
}

function extend(open: OpenText, { text, citations = [], logprobs = [] }: AnswerText): void {
  const offset = open.text.length;
  for (const each of citations)
    open.citations.push({ ...each, start: each.start + offset, end: each.end + offset });
  for (const each of logprobs) open.logprobs.push(each);
  open.text += text;
}

function encodeChoice(
  { parts, finish, stopSequence }: AnswerChoice,
  index: number,
  context: AnswerContext,
): string {
  const written: string[] = [];
  const logprobs: TokenLogprob[] = [];
  let signature: string | null = null;
  /**
   * The last text after reasoning whose signature is pending. As at the vendor, it gets the signature if no call
   * follows.
   */
  let spoken: { readonly at: number; readonly text: string } | null = null;
  let calls = 0;
  let textLength = 0;
  const grounding = isGrounded(parts) ? new GroundingWriter(true, context.lost) : null;
  for (const part of grounding === null ? parts : withJoinedTexts(parts)) {
    if (part.kind === 'reasoning') {
      if (signature !== null) written[spoken?.at ?? written.length] = textPart(spoken?.text ?? '', signature);
      spoken = null;
      if (context.showReasoning && part.text !== '') written.push(thoughtPart(part.text));
      signature = part.signature;
      continue;
    }
    if (part.kind === 'search') {
      grounding?.addSearch(part);
      continue;
    }
    if (part.kind === 'toolCall') {
      // Clients run each call that they get.
      if (finish === 'length' && part === parts.at(-1) && isCutCall(part, context.tools)) continue;
      // The vendor requires a signature on the first call of a turn: `restore` replaces this one.
      signature ??= calls === 0 ? noSignature : null;
      written.push(callPart({ ...part, id: answerCallId(part.id, context, index, calls++) }, signature));
      signature = null;
      spoken = null;
    } else {
      if (part.kind === 'text') {
        if (part.logprobs !== undefined) logprobs.push(...part.logprobs);
        for (const citation of part.citations ?? [])
          grounding?.addCitation({
            ...citation,
            start: citation.start + textLength,
            end: citation.end + textLength,
          });
      }
      textLength += part.text.length;
      grounding?.addText(part.text);
      if (signature !== null) spoken = { at: written.length, text: part.text };
      written.push(textPart(part.text, null));
    }
  }
  if (finish === 'stopSequence' && stopSequence !== null) context.lost.add('stop_sequence');
  if (signature !== null || written.length === 0)
    written[spoken?.at ?? written.length] = textPart(spoken?.text ?? '', signature);
  const probabilities = logprobs.length > 0 ? `,"logprobsResult":${encodeLogprobs(logprobs)}` : '';
  return (
    `{"content":{"role":"model","parts":[${written.join()}]},` +
    `"finishReason":"${encodeFinish(finish)}","index":${index}${probabilities}${grounding?.text() ?? ''}}`
  );
}
