import { GatewayError } from '../../errors.js';
import type { JsonObject } from '../../wire/json.js';
import { queryParameter } from '../../wire/query.js';

const defaultLimit = 20;
const maximumLimit = 100;

/** Which items of a response's input are asked for. */
interface ItemPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Id of the item behind which the page begins; empty for the first page. */
  readonly after: string;
}

/**
 * Reads the query of `GET /v1/responses/{id}/input_items`.
 * https://platform.openai.com/docs/api-reference/responses/input-items
 * @throws {GatewayError} `invalid_value` for a limit or an order that is none
 */
export function readItemPage(query: string): ItemPage {
  const limit = queryParameter(query, 'limit');
  const order = queryParameter(query, 'order') || 'desc';
  if (limit !== '' && !(/^[1-9]\d{0,2}$/.test(limit) && Number(limit) <= maximumLimit))
    throw new GatewayError('invalid_value', `'limit' must be a whole number from 1 to ${maximumLimit}.`, {
      param: 'limit',
    });
  if (order !== 'asc' && order !== 'desc')
    throw new GatewayError('invalid_value', "'order' must be 'asc' or 'desc'.", { param: 'order' });
  return {
    limit: limit === '' ? defaultLimit : Number(limit),
    order,
    after: queryParameter(query, 'after'),
  };
}

/**
 * JSON text of one page of the items of an input.
 * @param items in their order, each with an id
 * @throws {GatewayError} `invalid_value` for a page that begins behind an item which is not there
 */
export function itemPage(items: readonly JsonObject[], { limit, order, after }: ItemPage): string {
  const ordered = order === 'asc' ? items : items.toReversed();
  const before = after === '' ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== '' && before === -1)
    throw new GatewayError('invalid_value', "'after' names no item of this response.", { param: 'after' });
  const data = ordered.slice(before + 1, before + 1 + limit);
  return JSON.stringify({
    object: 'list',
    data: data.map(shownItem),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before + 1 + limit < ordered.length,
  });
}

/** An item as the vendor shows it: a message has a type, a status and a list of parts, of which clients may leave out all. */
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
