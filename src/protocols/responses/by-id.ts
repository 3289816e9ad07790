import { shownId } from '../../conversation/kept-turns.js';
import { chargedUsage, noCharges } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { type JsonObject, memberError, parseJson, parseObject } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { queryParameter } from '../../wire/query.js';
import { usageOfAnswer } from './answer/usage.js';
import { noteCharges } from './charges.js';
import { itemsIn, type KeptResponse, outputOf } from './kept.js';

/** An operation on a response that is named by its id. */
export type ResponseAction = 'show' | 'stream' | 'delete' | 'items' | 'cancel';

interface UpstreamAction {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path after the response's own. */
  readonly path: string;
  /** Query parameters that the operation may have. */
  readonly parameters: readonly string[];
}

/** The vendor's requests: https://platform.openai.com/docs/api-reference/responses */
const actions: Readonly<Record<ResponseAction, UpstreamAction>> = {
  show: { method: 'GET', path: '', parameters: ['include', 'include[]'] },
  stream: {
    method: 'GET',
    path: '',
    parameters: ['stream', 'starting_after', 'include', 'include[]', 'include_obfuscation'],
  },
  delete: { method: 'DELETE', path: '', parameters: [] },
  items: {
    method: 'GET',
    path: '/input_items',
    parameters: ['limit', 'order', 'after', 'before', 'include', 'include[]'],
  },
  cancel: { method: 'POST', path: '/cancel', parameters: [] },
};

/**
 * Makes the request to an upstream that holds a response.
 * @param id the upstream's id of the response
 * @param query of the client's request
 * @returns a path under the upstream's base URL
 */
export function upstreamRequest(
  id: string,
  action: ResponseAction,
  query: string,
): { readonly method: UpstreamAction['method']; readonly path: string } {
  const { method, path, parameters } = actions[action];
  const asked = new URLSearchParams(query);
  const passed = new URLSearchParams();
  for (const name of parameters) for (const value of asked.getAll(name)) passed.append(name, value);
  const text = passed.toString();
  return {
    method,
    path: `/responses/${encodeURIComponent(id)}${path}${text === '' ? '' : `?${text}`}`,
  };
}

/** Returns the 404 for a response that is not kept, or not for this key. */
export function responseNotFound(id: string): GatewayError {
  return new GatewayError('item_not_found', `Response with id${shownId(id)} not found.`);
}

/**
 * Tells whether a response is requested as a stream of its events.
 * @param query of the client's request
 * @throws {GatewayError} of status 400 if the stream is to begin after something that is not the number of an event
 */
export function asksForStream(query: string): boolean {
  if (queryParameter(query, 'stream') !== 'true') return false;
  const after = queryParameter(query, 'starting_after');
  if (after === '' || eventNumber.test(after)) return true;
  throw memberError(
    'invalid_value',
    'starting_after',
    "'starting_after' is the sequence number of an event.",
  );
}

const eventNumber = /^\d{1,15}$/;

/** Returns the vendor's 400 for a response that was not made in the background. None of the gateway's own is. */
export function notStreamable(): GatewayError {
  return memberError(
    'invalid_request',
    'stream',
    'This response cannot be streamed because it was not created with background=true.',
  );
}

/** Returns the 400 for a response that is already complete: none of the gateway's own is made in the background. */
export function notCancellable(): GatewayError {
  return new GatewayError(
    'invalid_request',
    "Only a response that is made with 'background' can be cancelled, and this one was not.",
  );
}

/** Returns the answer to the deletion of a response. */
export function deletedResponse(id: string): string {
  return JSON.stringify({ id, object: 'response', deleted: true });
}

/** A turn with the id of its response. */
export interface IdentifiedTurn {
  readonly id: string;
  readonly kept: KeptResponse;
}

/**
 * Returns all items that a response was made from, in their order: those of the turns before it, and the client's own
 * of its turn.
 * @param before oldest first
 */
export function inputItems(before: readonly IdentifiedTurn[], last: IdentifiedTurn): readonly JsonObject[] {
  const earlier = before.flatMap((turn) => [
    ...clientItems(turn),
    ...objectsIn(outputOf(turn.kept.response)),
  ]);
  return [...earlier, ...clientItems(last)];
}

/** Prefixes of the vendor's ids of items. */
const idPrefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  compaction: 'cmp',
};

/**
 * Returns the client's items. An item that arrived without an id gets one from its position in its turn. `recall` finds
 * it under that id.
 */
function clientItems({ id, kept }: IdentifiedTurn): JsonObject[] {
  const made = id.slice(id.indexOf('_') + 1);
  return objectsIn(`[${kept.items}]`).map((item, index) => {
    if (typeof item.id === 'string') return item;
    const prefix = idPrefixes[typeof item.type === 'string' ? item.type : 'message'] ?? 'item';
    return { ...item, id: `${prefix}_${made}_i${index}` };
  });
}

function objectsIn(list: string): JsonObject[] {
  return itemsIn(list).map((item) => parseObject(item) ?? {});
}

/** Final states of a response in the background: https://platform.openai.com/docs/api-reference/responses/object */
const ends = ['completed', 'incomplete', 'failed', 'cancelled'] as const;

/** How a response has ended, and its usage if it reports any. */
export interface ResponseEnd {
  readonly status: (typeof ends)[number];
  readonly usage: Usage | null;
}

const ofStatus = new Set(['status']);

/**
 * @param response JSON text of a whole response
 * @returns null for a response that has not ended, and for any other value
 */
export function endOfResponse(response: Buffer): ResponseEnd | null {
  const text = withoutMembers(response, ofStatus)?.taken.get('status');
  const said = text === undefined ? null : parseJson(text);
  const status = ends.find((each) => each === said);
  if (status === undefined) return null;
  const usage = usageOfAnswer(response);
  if (usage === null) return { status, usage };
  const charges = noCharges();
  noteCharges(response, charges);
  return { status, usage: chargedUsage(usage, charges) };
}

const defaultLimit = 20;
const maximumLimit = 100;

/** The requested page of a response's input items. */
interface ItemPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Id of the item after which the page begins; empty for the first page. */
  readonly after: string;
}

/**
 * Reads the query of `GET /v1/responses/{id}/input_items`.
 * https://platform.openai.com/docs/api-reference/responses/input-items
 * @throws {GatewayError} `invalid_value` for an invalid limit or order
 */
export function readItemPage(query: string): ItemPage {
  const limit = queryParameter(query, 'limit');
  const order = queryParameter(query, 'order') || 'desc';
  if (limit !== '' && !(/^[1-9]\d{0,2}$/.test(limit) && Number(limit) <= maximumLimit))
    throw memberError('invalid_value', 'limit', `'limit' must be a whole number from 1 to ${maximumLimit}.`);
  if (order !== 'asc' && order !== 'desc')
    throw memberError('invalid_value', 'order', "'order' must be 'asc' or 'desc'.");
  return {
    limit: limit === '' ? defaultLimit : Number(limit),
    order,
    after: queryParameter(query, 'after'),
  };
}

/**
 * Returns the JSON text of one page of an input's items.
 * @param items in their order, each with an id
 * @throws {GatewayError} `invalid_value` for a page that begins after an unknown item
 */
export function itemPage(items: readonly JsonObject[], { limit, order, after }: ItemPage): string {
  const ordered = order === 'asc' ? items : items.toReversed();
  const before = after === '' ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== '' && before === -1)
    throw memberError('invalid_value', 'after', "'after' names no item of this response.");
  const data = ordered.slice(before + 1, before + 1 + limit);
  return JSON.stringify({
    object: 'list',
    data: data.map(shownItem),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before + 1 + limit < ordered.length,
  });
}

/**
 * Returns an item in the vendor's form: a message has a type, a status and a list of parts. Clients may omit all of
 * these.
 */
function shownItem(item: JsonObject): JsonObject {
  const { type = 'message', role, content } = item;
  if (type !== 'message') return item;
  const part = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' };
  return {
    status: 'completed',
    ...item,
    type,
    content: typeof content === 'string' ? [{ ...part, text: content }] : content,
  };
}
