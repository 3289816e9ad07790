import { GatewayError } from '../errors.js';
import type { Answer, FinishReason } from './answer.js';
import type { ConversationRequest, Turn } from './request.js';

/*
 * A compaction replaces the earlier turns of a conversation. Upstreams without compaction are asked for a summary.
 */

const instruction =
  'Write a thorough summary of the conversation up to here. It will replace the conversation: whoever goes on will ' +
  'have nothing but your summary. State the goals and wishes of the user with every constraint, the facts that were ' +
  'found, the decisions and the reasons for them, what was done and with what result, and the work that is still ' +
  'open, with the next step. Repeat names, paths, ids, numbers, commands and error messages verbatim. ' +
  'Write only the summary: do not go on with the work, and call no tools.';

/**
 * Turns a request into a request for a summary of its conversation. Its functions stay, because the conversation
 * contains calls of them, but none may be called. Tools of the upstream, the format of the answer and its token limit
 * are removed.
 * @param compaction form of the answer for the client
 * @param instructions the client's own instructions for the summary
 */
export function compactionRequest(
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
 * Returns the text of an answer that is a summary.
 * @throws {GatewayError} `upstream_error` if it cannot replace the conversation
 */
export function summaryOf({ choices: [choice] }: Answer): string {
  let text = '';
  for (const part of choice?.parts ?? []) if (part.kind === 'text') text += part.text;
  const fault = faultOfSummary(text, choice?.finish ?? 'stop');
  if (fault !== null) throw fault;
  return text;
}

/** Returns why an answer cannot replace the conversation as its summary, or null if it can. */
export function faultOfSummary(summary: string, finish: FinishReason): GatewayError | null {
  if (finish === 'length' || finish === 'filtered')
    return new GatewayError('upstream_error', "The model's summary of the conversation was cut.");
  if (summary.trim() === '')
    return new GatewayError('upstream_error', 'The model wrote no summary of the conversation.');
  return null;
}
