import { shownId } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { type JsonObject, parseObject } from '../../wire/json.js';
import { elementsOf } from '../../wire/json-elements.js';
import { queryParameter } from '../../wire/query.js';
import { type KeptResponse, outputOf } from './kept.js';

/** What is asked of a response by its id. */
export type ResponseAction = 'show' | 'stream' | 'delete' | 'items' | 'cancel';

interface UpstreamAction {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Behind the response's own path. */
  readonly path: string;
  /** Parameters that it may have. */
  readonly parameters: readonly string[];
}

/** How the vendor is asked: https://platform.openai.com/docs/api-reference/responses */
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
 * How an upstream is asked that holds a response.
 * @param id that it gave
 * @param query of the client's request
 * @returns the path stands under the upstream's base URL
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

/** The 404 for a response that is not kept, or not for this key. */
export function responseNotFound(id: string): GatewayError {
  return new GatewayError('item_not_found', `Response with id${shownId(id)} not found.`);
}

/**
 * Whether a response is to be shown as the stream of its events.
 * @param query of the client's request
 * @throws {GatewayError} of status 400 where it is to begin behind what is no number of an event
 */
export function asksForStream(query: string): boolean {
  if (queryParameter(query, 'stream') !== 'true') return false;
  const after = queryParameter(query, 'starting_after');
  if (after === '' || eventNumber.test(after)) return true;
  throw new GatewayError('invalid_value', "'starting_after' is the sequence number of an event.", {
    param: 'starting_after',
  });
}

const eventNumber = /^\d{1,15}$/;

/** The vendor's 400 for a response that was not made in the background, as none of the gateway's own was. */
export function notStreamable(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'This response cannot be streamed because it was not created with background=true.',
    { param: 'stream' },
  );
}

/** The 400 for a response that is whole already: none of the gateway's own is made in the background. */
export function notCancellable(): GatewayError {
  return new GatewayError(
    'invalid_request',
    "Only a response that is made with 'background' can be cancelled, and this one was not.",
  );
}

/** What the deletion of a response is answered with. */
export function deletedResponse(id: string): string {
  return JSON.stringify({ id, object: 'response', deleted: true });
}

/** A turn with the id of its response. */
export interface IdentifiedTurn {
  readonly id: string;
  readonly kept: KeptResponse;
}

/**
 * All items that a response was made from, in their order: those of the turns before it, and the client's own of its turn.
 * @param before oldest first
 */
export function inputItems(before: readonly IdentifiedTurn[], last: IdentifiedTurn): readonly JsonObject[] {
  const earlier = before.flatMap((turn) => [
    ...clientItems(turn),
    ...objectsOf(outputOf(turn.kept.response)),
  ]);
  return [...earlier, ...clientItems(last)];
}

/** How the vendor's ids of items begin. */
const idPrefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  compaction: 'cmp',
};

/** An item that came without an id has one by its place in its turn, under which `recall` finds it. */
function clientItems({ id, kept }: IdentifiedTurn): JsonObject[] {
  const made = id.slice(id.indexOf('_') + 1);
  return objectsOf(`[${kept.items}]`).map((item, index) => {
    if (typeof item.id === 'string') return item;
    const prefix = idPrefixes[typeof item.type === 'string' ? item.type : 'message'] ?? 'item';
    return { ...item, id: `${prefix}_${made}_i${index}` };
  });
}

function objectsOf(list: string): JsonObject[] {
  return (elementsOf(Buffer.from(list)) ?? []).map((element) => parseObject(element) ?? {});
}
