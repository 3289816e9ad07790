import { GatewayError } from '../errors.js';
import { isObject, parse } from '../keys/managed-key.js';

/** Where a page of the list of keys begins: in the config file, or, after all of these, in the store. */
export type KeyPlace =
  | { readonly source: 'config'; readonly at: number }
  | { readonly source: 'managed'; readonly cursor: string | null };

/** A place as a text that needs no escapes in a URL. */
export function writePlace(place: KeyPlace): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/**
 * Reads what `writePlace` wrote; the beginning for nothing.
 * @throws {GatewayError} `invalid_value` for any other text
 */
export function readPlace(text: string | null): KeyPlace {
  if (text === null || text === '') return { source: 'config', at: 0 };
  const value = parse(Buffer.from(text, 'base64url').toString('utf8'));
  if (isObject(value)) {
    const { source, at, cursor } = value;
    if (source === 'config' && Number.isSafeInteger(at) && (at as number) >= 0)
      return { source, at: at as number };
    if (source === 'managed' && (cursor === null || typeof cursor === 'string')) return { source, cursor };
  }
  throw new GatewayError('invalid_value', 'The cursor must be the "next" of the page before.', {
    param: 'cursor',
  });
}
