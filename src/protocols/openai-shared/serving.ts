import { isObject, type JsonObject } from '../../wire/json.js';

/** Members of a body of chat and of responses alike that say how the call is served, not what is answered. */
export const servingMembers = [
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'metadata',
] as const;

/** Reads them; see `ConversationRequest.serving`. */
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
 * @param except is not written
 * @returns JSON text of the members, a comma before each
 */
export function encodeServing(serving: JsonObject | undefined, except: string | null = null): string {
  let text = '';
  for (const [name, value] of Object.entries(serving ?? {}))
    if (name !== except) text += `,"${name}":${JSON.stringify(value)}`;
  return text;
}
