import { shownId } from '../../conversation/kept-turns.js';
import { chargedUsage, noCharges } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { type JsonObject, memberError, parseJson, parseObject, textOrNull } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { queryParameter } from '../../wire/query.js';
import { usageOfAnswer } from './answer/usage.js';
import { noteCharges } from './charges.js';
import { itemsIn, type KeptResponse, outputOf, responseOfItem } from './kept.js';

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

/** An item of a turn: its JSON text, and its number among the client's items of its turn, or -1 for one of the answer. */
interface TurnItem {
  readonly turnId: string;
  readonly text: string;
  readonly number: number;
}

function turnItems({ id, kept }: IdentifiedTurn, withAnswer: boolean): TurnItem[] {
  const asked = itemsIn(`[${kept.items}]`).map((text, number) => ({ turnId: id, text, number }));
  if (!withAnswer) return asked;
  return [...asked, ...itemsIn(outputOf(kept.response)).map((text) => ({ turnId: id, text, number: -1 }))];
}

const ofIdentity: ReadonlySet<string> = new Set(['id', 'type']);

/**
 * Returns the id of an item. A client's item that arrived without an id gets one from its position in its turn. `recall`
 * finds it under that id.
 */
function idOfItem({ turnId, text, number }: TurnItem): string | null {
  const taken = withoutMembers(Buffer.from(text), ofIdentity)?.taken;
  const id = parseJson(taken?.get('id') ?? 'null');
  if (number === -1 || typeof id === 'string') return textOrNull(id);
  const type = parseJson(taken?.get('type') ?? 'null');
  const prefix = idPrefixes[typeof type === 'string' ? type : 'message'] ?? 'item';
  return `${prefix}_${turnId.slice(turnId.indexOf('_') + 1)}_i${number}`;
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
 * Gathers one page of the items that a response was made from: those of the turns before it, and the client's own of its
 * turn. It is given the turns that the page needs, and no others.
 */
export class PageOfItems {
  readonly #page: ItemPage;
  readonly #last: IdentifiedTurn;
  /** Ids of the turns that may still be needed, in the order of the page. */
  readonly #turns: string[];
  /** Those of the page, and one more if there is one. */
  readonly #items: TurnItem[] = [];
  #isBegun: boolean;

  constructor(page: ItemPage, last: IdentifiedTurn) {
    const turns = [...last.kept.before, last.id];
    if (page.order === 'desc') turns.reverse();
    // An item with an id of the gateway's own names its turn.
    const of = responseOfItem(page.after);
    const from = of === null ? -1 : turns.indexOf(of);
    this.#page = page;
    this.#last = last;
    this.#turns = turns.slice(Math.max(0, from));
    this.#isBegun = page.after === '';
    this.#takeLast();
  }

  /** Ids of the next turns to read and to give to `add`, in this order; none once the page is complete. */
  get needed(): readonly string[] {
    const missing = this.#page.limit + 1 - this.#items.length;
    const last = this.#turns.indexOf(this.#last.id);
    // Most turns have an item of the client and one of the answer.
    return this.#turns.slice(0, Math.min(Math.ceil(missing / 2), last === -1 ? this.#turns.length : last));
  }

  /** Adds the first of the needed turns. */
  add(turn: IdentifiedTurn): void {
    this.#turns.shift();
    this.#take(turnItems(turn, true));
    this.#takeLast();
  }

  #takeLast(): void {
    if (this.#turns[0] !== this.#last.id) return;
    this.#turns.shift();
    this.#take(turnItems(this.#last, false));
  }

  #take(items: readonly TurnItem[]): void {
    const { limit, order, after } = this.#page;
    for (const item of order === 'asc' ? items : items.toReversed()) {
      if (this.#items.length > limit) return;
      if (this.#isBegun) this.#items.push(item);
      else this.#isBegun = idOfItem(item) === after;
    }
  }

  /**
   * Returns the JSON text of the page.
   * @throws {GatewayError} `invalid_value` for a page that begins after an unknown item
   */
  text(): string {
    if (!this.#isBegun)
      throw memberError('invalid_value', 'after', "'after' names no item of this response.");
    const { limit } = this.#page;
    const data = this.#items.slice(0, limit).map((item): JsonObject => {
      const parsed = parseObject(item.text) ?? {};
      const id = idOfItem(item);
      return id === null || typeof parsed.id === 'string' ? parsed : { ...parsed, id };
    });
    return JSON.stringify({
      object: 'list',
      data: data.map(shownItem),
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: this.#items.length > limit,
    });
  }
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
