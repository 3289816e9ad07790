import type { OutputFormat } from '../../conversation/request.js';
import { flagOrNull, type JsonObject, textOrNull } from '../../wire/json.js';

/* Settings that chat and responses have in the same form, if not in the same place. */

type SchemaFormat = Extract<OutputFormat, { readonly kind: 'schema' }>;

/** @returns the member with its comma, or an empty string if it is not set */
export function member(name: string, value: unknown): string {
  if (value === null) return '';
  return `,"${name}":${typeof value === 'number' ? value : JSON.stringify(value)}`;
}

/**
 * Reads an answer format with a schema.
 * @param named the members beside the schema
 */
export function decodeSchema(named: JsonObject, schema: JsonObject): SchemaFormat {
  return {
    kind: 'schema',
    name: textOrNull(named.name),
    description: textOrNull(named.description),
    schema,
    strict: flagOrNull(named.strict),
  };
}

/** Writes such a format without its type. */
export function encodeSchema({ name, description, schema, strict }: SchemaFormat): JsonObject {
  return {
    name: name ?? 'response',
    description: description ?? undefined,
    schema,
    strict: strict ?? undefined,
  };
}

/** Reads the end user's id. Some clients send an empty text if they have none (LlamaIndex). */
export function decodeUser({ safety_identifier: id, user }: JsonObject): string | null {
  return textOrNull(id) || textOrNull(user) || null;
}
