import type { Answer, AnswerPart } from '../../../conversation/answer.js';
import type { AnswerContext } from '../../../conversation/codec.js';
import { summaryOf } from '../../../conversation/compaction.js';
import { keptItems, sealSummary } from '../compact.js';
import { ownItemId } from '../made-id.js';
import {
  annotation,
  calledTool,
  callItem,
  compactionItem,
  type ItemStatus,
  logprobList,
  messageId,
  messageItem,
  reasoningItem,
  refusalPart,
  textPart,
} from '../output.js';
import { frameResponse, responseText } from '../response.js';
import { searchItem } from '../search-item.js';
import { encodeFinish } from './finish.js';
import { encodeUsage } from './usage.js';

/**
 * Encodes a whole answer; see `TextCodec.encodeAnswer`.
 * @throws {GatewayError} for a compaction without a whole summary
 */
export function encodeAnswer(answer: Answer, context: AnswerContext): string {
  if (context.compaction !== null) return encodeCompaction(answer, context);
  const [choice] = answer.choices;
  if (choice?.finish === 'stopSequence' && choice.stopSequence !== null) context.lost.add('stop_sequence');
  const { status, reason } = encodeFinish(choice?.finish ?? 'stop');
  const output = encodeOutput(choice?.parts ?? [], status === 'incomplete', context);
  return responseText(frameResponse(context), { status, reason, output, usage: answer.usage });
}

function encodeCompaction(answer: Answer, context: AnswerContext): string {
  const summary = summaryOf(answer);
  const { id, created, sealer, echo } = context;
  const item = compactionItem(id, sealSummary(summary, sealer));
  if (context.compaction === 'item') {
    const state = { status: 'completed', output: item, usage: answer.usage } as const;
    return responseText(frameResponse(context), state);
  }
  const output = [...keptItems(echo?.kept, id), item].join(',');
  return `{"id":"resp_${id}","object":"response.compaction","created_at":${created},"output":[${output}],"usage":${encodeUsage(answer.usage)}}`;
}

/** Encodes the items of an answer, with the numbers that a stream of it would have. */
function encodeOutput(parts: readonly AnswerPart[], isCut: boolean, context: AnswerContext): string {
  const { id } = context;
  const naming = { id, tools: context.clientTools };
  const items: string[] = [];
  let hasMessage = false;
  let content = '';
  const close = (status: ItemStatus): void => {
    if (content === '') return;
    items.push(messageItem(messageId(id, items.length, !hasMessage), status, content));
    hasMessage = true;
    content = '';
  };
  const lastStatus = isCut ? 'incomplete' : 'completed';
  parts.forEach((part, index) => {
    if (part.kind === 'text' || part.kind === 'refusal') {
      if (part.text !== '') content += (content === '' ? '' : ',') + messagePart(part);
    } else if (part.kind === 'toolCall') {
      close('completed');
      const status = index === parts.length - 1 ? lastStatus : 'completed';
      items.push(callItem(calledTool(part, items.length, naming), status, part.input));
    } else if (part.kind === 'search') {
      close('completed');
      items.push(searchItem(ownItemId('ws', id, items.length), 'completed', part));
    } else {
      const shown = context.showReasoning ? part.text : '';
      if (shown === '' && part.signature === null) return;
      close('completed');
      items.push(reasoningItem(ownItemId('rs', id, items.length), shown, part.signature));
    }
  });
  close(lastStatus);
  return items.join(',');
}

function messagePart(part: Extract<AnswerPart, { readonly kind: 'text' | 'refusal' }>): string {
  if (part.kind === 'refusal') return refusalPart(part.text);
  const annotations = (part.citations ?? []).map(annotation).join(',');
  return textPart({ text: part.text, annotations, logprobs: logprobList(part.logprobs) });
}
