import type { TokenLogprob, UrlCitation } from '../../conversation/answer.js';
import { legalCarryingId } from '../../conversation/carrying-id.js';
import type { ClientTool, ToolCallPart } from '../../conversation/request.js';
import { quoted } from '../../wire/quoted.js';
import { responsesCallId } from '../openai-shared/hashed-id.js';
import { type ClientToolType, clientCallMembers } from './client-tools.js';

/*
 * JSON texts of the items in a response's `output`, the same in a stream and in a whole answer. Ids of items are made
 * from the answer's id and the number of the item.
 */

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** @param index number of the item in `output`; the id of the first message has only the answer's id */
export function messageId(id: string, index: number, isFirst: boolean): string {
  return isFirst ? `msg_${id}` : `msg_${id}_${index}`;
}

/**
 * Writes a message item.
 * @param parts JSON texts of its parts, with commas
 */
export function messageItem(id: string, status: ItemStatus, parts: string): string {
  return `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${parts}]}`;
}

interface TextContent {
  readonly text: string;
  /** JSON texts, with commas. */
  readonly annotations: string;
  readonly logprobs: string;
}

/** Writes a text part of a message. */
export function textPart({ text, annotations, logprobs }: TextContent): string {
  return `{"type":"output_text","text":${quoted(text)},"annotations":[${annotations}],"logprobs":[${logprobs}]}`;
}

/** Writes a refusal part of a message. */
export function refusalPart(text: string): string {
  return `{"type":"refusal","refusal":${JSON.stringify(text)}}`;
}

/** Writes the source of a text. */
export function annotation({ start, end, url, title }: UrlCitation): string {
  return `{"type":"url_citation","start_index":${start},"end_index":${end},"url":${JSON.stringify(url)},"title":${JSON.stringify(title)}}`;
}

/** Writes the log probabilities of a piece of text, with commas; empty for none. */
export function logprobList(logprobs: readonly TokenLogprob[] | undefined): string {
  return logprobs === undefined || logprobs.length === 0 ? '' : JSON.stringify(logprobs).slice(1, -1);
}

/** Writes a part of a reasoning item's summary. */
export function summaryPart(text: string): string {
  return `{"type":"summary_text","text":${JSON.stringify(text)}}`;
}

/**
 * Writes a reasoning item.
 * @param summary the text to show, or empty
 * @param token its encrypted form, which the client carries, or null
 */
export function reasoningItem(id: string, summary: string, token: string | null): string {
  const encrypted = token === null ? '' : `,"encrypted_content":${JSON.stringify(token)}`;
  return `{"id":"${id}","type":"reasoning","summary":[${summary === '' ? '' : summaryPart(summary)}]${encrypted}}`;
}

/** A call of one of the client's tools, with the client's names. */
export interface CalledTool {
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly namespace: string | null;
  readonly type: 'function' | 'custom' | ClientToolType;
}

/** How the calls of an answer are named for the client. */
export interface CallNaming {
  /** Id of the answer. */
  readonly id: string;
  /** The client's tools by their names at the upstream, if those differ. */
  readonly tools: ReadonlyMap<string, ClientTool> | undefined;
}

type UpstreamCall = Pick<ToolCallPart, 'id' | 'name' | 'custom'>;

/** Prefixes of item ids. */
const idPrefixes: Readonly<Record<CalledTool['type'], string>> = {
  function: 'fc',
  custom: 'ctc',
  tool_search: 'tsc',
  local_shell: 'lsh',
  shell: 'sh',
  apply_patch: 'apc',
};

/** @param index number of the item in `output` */
export function calledTool(call: UpstreamCall, index: number, { id, tools }: CallNaming): CalledTool {
  const known = tools?.get(call.name);
  const type = known?.type ?? (call.custom ? 'custom' : 'function');
  return {
    id: `${idPrefixes[type]}_${id}_${index}`,
    callId: call.id === '' ? `call_${id}_${index}` : legalCarryingId(call.id, responsesCallId),
    name: known?.name ?? call.name,
    namespace: known?.namespace ?? null,
    type,
  };
}

/**
 * Writes the item of a call.
 * @param input its arguments or free text, perhaps incomplete
 */
export function callItem(call: CalledTool, status: ItemStatus, input: string): string {
  const { id, callId, name, namespace, type } = call;
  const kind = type === 'custom' ? 'custom_tool' : type;
  // A patch has no state for a call that was broken off.
  const state = type === 'apply_patch' && status === 'incomplete' ? 'in_progress' : status;
  const head = `{"id":"${id}","type":"${kind}_call","status":"${state}","call_id":${JSON.stringify(callId)}`;
  if (type !== 'function' && type !== 'custom') return `${head}${clientCallMembers(type, input)}}`;
  return (
    `${head},"name":${JSON.stringify(name)}` +
    `${namespace === null ? '' : `,"namespace":${JSON.stringify(namespace)}`},` +
    `"${type === 'custom' ? 'input' : 'arguments'}":${quoted(input)}}`
  );
}

/**
 * Writes the item that replaces a conversation.
 * @param sealed its summary, as the client carries it
 */
export function compactionItem(id: string, sealed: string): string {
  return `{"id":"cmp_${id}","type":"compaction","encrypted_content":${JSON.stringify(sealed)}}`;
}
