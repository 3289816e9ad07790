import type { Answer, FinishReason } from '../../conversation/answer.js';
import type { ConversationRequest, Turn } from '../../conversation/request.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, parseObject } from '../../wire/json.js';
import type { Sealer } from '../../wire/seal.js';
import { messageId } from './output.js';

/*
 * A compaction takes the place of a conversation's earlier turns. An upstream of another protocol has none, so the
 * model is asked for a summary, which the client carries sealed and sends back in place of the turns.
 */

const kind = 'compaction';
const introduction = 'Summary of the conversation so far:\n\n';
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
 */
export function asCompaction(
  request: ConversationRequest,
  compaction: 'object' | 'item',
): ConversationRequest {
  const question: Turn = { role: 'user', parts: [{ kind: 'text', text: instruction }] };
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

/** The text of an answer that is a summary; empty when it has none. */
export function summaryOf(answer: Answer): string {
  let text = '';
  for (const part of answer.choices[0]?.parts ?? []) if (part.kind === 'text') text += part.text;
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

/** Closes a summary for the client to carry. */
export function sealSummary(summary: string, sealer: Sealer): string {
  return sealer.seal(JSON.stringify({ kind, summary }));
}

/** Whether an item is the compaction of a conversation; some clients call it a summary of one. */
export function isCompaction({ type }: JsonObject): boolean {
  return type === 'compaction' || type === 'compaction_summary';
}

/** What is said in place of the turns that a compaction item stands for; null for one that was not made here. */
export function openCompaction({ encrypted_content: sealed }: JsonObject, sealer: Sealer): string | null {
  const opened = typeof sealed === 'string' ? sealer.open(sealed) : null;
  const content = opened === null ? null : parseObject(opened);
  if (content?.kind !== kind || typeof content.summary !== 'string') return null;
  return introduction + content.summary;
}

/*
 * A compaction of a conversation begins with the last things that the user said, word for word: the summary comes
 * after them.
 */

/** Most characters of them, as JSON. */
const mostKept = 20_000;

/**
 * The contents of the last messages of the user, as JSON texts, from the first of them to the last.
 * @param input a client's, which has been decoded
 */
export function keptContents(input: unknown): string[] {
  const items: readonly unknown[] = Array.isArray(input) ? input : [{ role: 'user', content: input }];
  const kept: string[] = [];
  let characters = 0;
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (!isObject(item) || !isUserMessage(item)) continue;
    const content = contentText(item.content);
    characters += content.length;
    if (characters > mostKept) break;
    kept.push(content);
  }
  return kept.reverse();
}

function isUserMessage({ type, role }: JsonObject): boolean {
  return role === 'user' && (type === 'message' || type === undefined || type === null);
}

function contentText(content: unknown): string {
  return JSON.stringify(typeof content === 'string' ? [{ type: 'input_text', text: content }] : content);
}

/**
 * The items of an answer for contents that were kept.
 * @param contents what `keptContents` gave
 * @param id of the answer
 */
export function keptItems(contents: unknown, id: string): string[] {
  if (!Array.isArray(contents)) return [];
  return contents.map(
    (content, index) =>
      `{"id":"${messageId(id, index, index === 0)}","type":"message","status":"completed","role":"user","content":${content}}`,
  );
}
