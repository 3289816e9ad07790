import { GatewayError } from '../errors.js';
import type { Answer, FinishReason } from './answer.js';
import type { ConversationRequest, Turn } from './request.js';

/*
 * A compaction takes the place of a conversation's earlier turns. An upstream that has none is asked for a summary.
 */

const instruction =
  'Write a thorough summary of the conversation up to here. It will replace the conversation: whoever goes on will ' +
  'have nothing but your summary. State the goals and wishes of the user with every constraint, the facts that were ' +
  'found, the decisions and the reasons for them, what was done and with what result, and the work that is still ' +
  'open, with the next step. Repeat names, paths, ids, numbers, commands and error messages verbatim. ' +
  'Write only the summary: do not go on with the work, and call no tools.';

/**
 * Turns a request into one for the summary of its conversation. Its functions stay, because their calls are in the
 * conversation, but none may be called; tools of the upstream, the format of the answer and the limit of its length
 * have no part in it.
 * @param compaction how the client wants the answer
 * @param instructions the client's own words for what the summary should be
 */
export function asCompaction(
  request: ConversationRequest,
  compaction: NonNullable<ConversationRequest['compaction']>,
  instructions = '',
): ConversationRequest {
  const text = instructions.trim() === '' ? instruction : instructions;
  const question: Turn = { role: 'user', parts: [{ kind: 'text', text }] };
  return {
    ...request,
    turns: [...request.turns, question],
    hostedTools: [],
    search: undefined,
    toolChoice: request.tools.length === 0 ? null : { mode: 'none' },
    format: null,
    maxTokens: null,
    logprobs: null,
    verbosity: null,
    compaction,
  };
}

/**
 * The text of an answer that is a summary.
 * @throws {GatewayError} `upstream_error` for one that could not take the place of the conversation
 */
export function summaryOf({ choices: [choice] }: Answer): string {
  let text = '';
  for (const part of choice?.parts ?? []) if (part.kind === 'text') text += part.text;
  const fault = faultOfSummary(text, choice?.finish ?? 'stop');
  if (fault !== null) throw fault;
  return text;
}

/** Why an answer is no summary that could take the place of the conversation; null when it is one. */
export function faultOfSummary(summary: string, finish: FinishReason): GatewayError | null {
  if (finish === 'length' || finish === 'filtered')
    return new GatewayError('upstream_error', "The model's summary of the conversation was cut.");
  if (summary.trim() === '')
    return new GatewayError('upstream_error', 'The model wrote no summary of the conversation.');
  return null;
}
