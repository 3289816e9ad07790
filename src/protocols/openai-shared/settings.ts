import type { ConversationRequest, OutputFormat } from '../../conversation/request.js';
import { flagOrNull, isObject, type JsonObject, textOrNull } from '../../wire/json.js';

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
export function decodeUser({
  safety_identifier: id,
  user,
}: JsonObject): Pick<ConversationRequest, 'user' | 'userMember'> {
  const newer = textOrNull(id) || null;
  if (newer !== null) return { user: newer, userMember: 'safety_identifier' };
  return { user: textOrNull(user) || null };
}

/** Names `user` if the newer member counts in its place, and it is another id: other protocols have one of them. */
export function sparedUser({ safety_identifier: id, user }: JsonObject): readonly string[] {
  const [newer, older] = [textOrNull(id) || null, textOrNull(user) || null];
  return newer === null || older === null || newer === older ? [] : ['user'];
}

/** Members of chat and responses bodies that determine how the call is served, not its answer. */
export const servingMembers = [
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'metadata',
] as const;

/** Reads these members; see `ConversationRequest.serving`. */
export function decodeServing(body: JsonObject): JsonObject | undefined {
  let serving: Record<string, unknown> | undefined;
  for (const name of servingMembers) {
    const value = body[name] ?? null;
    const saysNothing =
      value === null || value === '' || (isObject(value) && Object.keys(value).length === 0);
    if (saysNothing) continue;
    serving ??= {};
    serving[name] = value;
  }
  return serving;
}

/**
 * @param except a member that is not written
 * @returns JSON text of the members, each with a comma before it
 */
export function encodeServing(serving: JsonObject | undefined, except: string | null = null): string {
  let text = '';
  for (const [name, value] of Object.entries(serving ?? {}))
    if (name !== except && value !== undefined) text += `,"${name}":${JSON.stringify(value)}`;
  return text;
}
