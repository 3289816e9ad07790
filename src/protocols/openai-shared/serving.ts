import { isObject, type JsonObject } from '../../wire/json.js';

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
    if (name !== except) text += `,"${name}":${JSON.stringify(value)}`;
  return text;
}
