import type { OutputFormat } from '../../conversation/request.js';
import { flagOrNull, type JsonObject, textOrNull } from '../../wire/json.js';

/* Settings that chat and responses have in the same words, if not at the same places. */

type SchemaFormat = Extract<OutputFormat, { readonly kind: 'schema' }>;

/** @returns a member with its comma, or nothing for one that is not set */
export function member(name: string, value: unknown): string {
  if (value === null) return '';
  return `,"${name}":${typeof value === 'number' ? value : JSON.stringify(value)}`;
}

/** Reads the format of an answer that is of a schema. @param named what stands beside the schema */
export function decodeSchema(named: JsonObject, schema: JsonObject): SchemaFormat {
  return {
    kind: 'schema',
    name: textOrNull(named.name),
    description: textOrNull(named.description),
    schema,
    strict: flagOrNull(named.strict),
  };
}

/** Writes it, but for its type. */
export function encodeSchema({ name, description, schema, strict }: SchemaFormat): JsonObject {
  return {
    name: name ?? 'response',
    description: description ?? undefined,
    schema,
    strict: strict ?? undefined,
  };
}

/** Reads the end user's id. Some clients send an empty text where they have no user (LlamaIndex). */
export function decodeUser({ safety_identifier: id, user }: JsonObject): string | null {
  return textOrNull(id) || textOrNull(user) || null;
}
