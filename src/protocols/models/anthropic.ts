import type { Model } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { queryParameter } from '../../wire/query.js';
import { positionOf, wholeNumber } from './page.js';

const defaultLimit = 20;
const maximumLimit = 1000;

/** RFC 3339 text of the time when the catalogue first knew the model. */
export function createdAt(model: Model): string {
  return `${new Date(model.created * 1000).toISOString().slice(0, -5)}Z`;
}

/** JSON text of one model as the messages family writes it. */
export function messagesModel(model: Model): string {
  const name = JSON.stringify(model.name);
  return `{"type":"model","id":${name},"display_name":${name},"created_at":"${createdAt(model)}","capabilities":null,"max_input_tokens":null,"max_tokens":null,"lifecycle":"active","line":null,"deprecated_at":null,"retires_at":null}`;
}

/**
 * JSON text of one page of the messages list: `limit` models after `after_id` or before `before_id`.
 * @throws GatewayError invalid_value for a bad limit or cursor, or for both cursors at once.
 */
export function messagesModelList(models: readonly Model[], query: string): string {
  const limit = wholeNumber(query, 'limit', 1) ?? defaultLimit;
  if (limit > maximumLimit) {
    throw new GatewayError('invalid_value', `'limit' must not be above ${maximumLimit}.`, { param: 'limit' });
  }
  const after = queryParameter(query, 'after_id');
  const before = queryParameter(query, 'before_id');
  if (after !== '' && before !== '') {
    throw new GatewayError('invalid_value', `'after_id' and 'before_id' cannot be used together.`, {
      param: 'before_id',
    });
  }
  if (before !== '') {
    const end = positionOf(models, before, 'before_id');
    const start = Math.max(0, end - limit);
    return page(models.slice(start, end), start > 0);
  }
  const start = after === '' ? 0 : positionOf(models, after, 'after_id') + 1;
  return page(models.slice(start, start + limit), start + limit < models.length);
}

function page(models: readonly Model[], hasMore: boolean): string {
  const firstId = JSON.stringify(models[0]?.name ?? null);
  const lastId = JSON.stringify(models.at(-1)?.name ?? null);
  return `{"data":[${models.map(messagesModel).join()}],"has_more":${hasMore},"first_id":${firstId},"last_id":${lastId}}`;
}
