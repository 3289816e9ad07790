import type { AnswerSource, ReplyContext } from '../../conversation/codec.js';
import { isObject, type JsonObject } from '../../conversation/json.js';
import type { Reply, ReplyPart } from '../../conversation/reply.js';
import { GatewayError } from '../../errors.js';
import { faultOfSummary, sealSummary, summaryOf } from './compact.js';
import { failureOf } from './failure.js';
import { keptItems } from './kept-messages.js';
import { clientNames } from './namespaces.js';
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
} from './output.js';
import { endOf, frameResponse, responseText } from './response.js';
import { finishOf, partsOfItem } from './upstream-output.js';
import { usageOf, usageText } from './usage.js';

/**
 * Decodes a whole answer of an upstream; see `TextCodec.decodeReply`.
 * @throws {GatewayError} for an answer that failed or is none of the protocol
 */
export function decodeReply(body: JsonObject, source: AnswerSource): Reply {
  if (isObject(body.error) || body.status === 'failed') throw failureOf(body);
  if (!Array.isArray(body.output)) {
    throw new GatewayError('upstream_error', "The upstream's answer is not of the responses protocol.");
  }
  if (body.status === 'cancelled' || body.status === 'queued' || body.status === 'in_progress') {
    throw new GatewayError('upstream_error', `The upstream's answer is not complete: it is ${body.status}.`);
  }
  const parts = body.output.flatMap((item, index) => partsOfItem(item, source.model, `output[${index}]`));
  const hasCalls = parts.some(({ kind }) => kind === 'toolCall');
  return {
    choices: [{ parts, finish: finishOf(body, hasCalls), stopSequence: null }],
    usage: usageOf(body.usage),
  };
}

/**
 * Encodes a whole answer; see `TextCodec.encodeReply`.
 * @throws {GatewayError} for a compaction without a whole summary
 */
export function encodeReply(reply: Reply, context: ReplyContext): string {
  if (context.compaction !== null) return encodeCompaction(reply, context);
  const [choice] = reply.choices;
  const end = endOf(choice?.finish ?? 'stop');
  const state = {
    ...end,
    output: encodeOutput(choice?.parts ?? [], end.status === 'incomplete', context),
    usage: reply.usage,
  };
  return responseText(frameResponse(context), state);
}

function encodeCompaction(reply: Reply, context: ReplyContext): string {
  const summary = summaryOf(reply);
  const fault = faultOfSummary(summary, reply.choices[0]?.finish ?? 'stop');
  if (fault !== null) throw fault;
  const { id, created, sealer, echo } = context;
  const item = compactionItem(id, sealSummary(summary, sealer));
  if (context.compaction === 'item') {
    const state = { status: 'completed', output: item, usage: reply.usage } as const;
    return responseText(frameResponse(context), state);
  }
  const output = [...keptItems(echo?.kept, id), item].join(',');
  return `{"id":"resp_${id}","object":"response.compaction","created_at":${created},"output":[${output}],"usage":${usageText(reply.usage)}}`;
}

/** The items of an answer, as a stream of it would number them. */
function encodeOutput(parts: readonly ReplyPart[], isCut: boolean, context: ReplyContext): string {
  const { id } = context;
  const naming = { id, names: clientNames(context.echo?.tools) };
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
    } else {
      const shown = context.showReasoning ? part.text : '';
      if (shown === '' && part.signature === null) return;
      close('completed');
      items.push(reasoningItem(`rs_${id}_${items.length}`, shown, part.signature));
    }
  });
  close(lastStatus);
  return items.join(',');
}

function messagePart(part: Extract<ReplyPart, { readonly kind: 'text' | 'refusal' }>): string {
  if (part.kind === 'refusal') return refusalPart(part.text);
  const annotations = (part.citations ?? []).map(annotation).join(',');
  return textPart({ text: part.text, annotations, logprobs: logprobList(part.logprobs) });
}
