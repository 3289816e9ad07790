/**
 * Tells which requests create or store something at an upstream of their own protocol. Such a request is not sent again
 * once it may have been sent. The rules run only after a failure and before a call that may be hedged.
 */
import { isObject, parseJson } from '../wire/json.js';
import { withoutMembers } from '../wire/json-skip.js';

/** @param body in chunks, as it is sent */
export type EffectRule = (body: readonly Buffer[]) => boolean;

/** For requests whose repetition costs again and does no other harm. */
export const noEffects: EffectRule = () => false;

/** For requests that create something each time. */
export const alwaysEffects: EffectRule = () => true;

/** Prefixes of the types of tools that an upstream runs and that may have effects elsewhere. */
const actingTools = ['image_generation', 'mcp', 'code_interpreter', 'code_execution', 'shell'];

/** Chat: responses that the body asks the upstream to store, answers that are fetched later, and images. */
export const chatEffects = effectsOf({ store: isGiven, deferred: isGiven, modalities: drawsOrFilms });

/** Messages: tools of MCP servers that the upstream calls, and code that runs in a container. */
export const messagesEffects = effectsOf({
  mcp_servers: isGiven,
  container: isGiven,
  tools: hasActingTool,
});

/** Responses: every response that the body does not exclude from storage, and tools that act. */
export const responsesEffects = effectsOf({
  store: (value) => value !== 'false',
  background: isGiven,
  conversation: isGiven,
  tools: hasActingTool,
});

/** generateContent: the same as chat, under its own member names. */
export const generateContentEffects = effectsOf({
  store: isGiven,
  generationConfig: makesMedia,
  generation_config: makesMedia,
});

/** @param hasEffect tells by the JSON text of a member, undefined for a missing one, whether a request has effects */
function effectsOf(hasEffect: Readonly<Record<string, (json: string | undefined) => boolean>>): EffectRule {
  const checks = Object.entries(hasEffect);
  const names = new Set(Object.keys(hasEffect));
  return (body) => {
    const members = membersOf(body, names);
    return checks.some(([name, check]) => check(members?.get(name)));
  };
}

function isGiven(value: string | undefined): boolean {
  return value !== undefined && value !== 'null' && value !== 'false';
}

function makesMedia(config: string | undefined): boolean {
  const members = membersOf([Buffer.from(config ?? '')], ofConfig);
  const modalities = [members?.get('responseModalities'), members?.get('response_modalities')];
  if (modalities.some(drawsOrFilms)) return true;
  // Models that make images do so unless the request excludes them.
  const isUnsaid = modalities.every((each) => each === undefined || each === 'null');
  return (
    isUnsaid &&
    (isGiven(members?.get('imageConfig')) ||
      isGiven(members?.get('image_config')) ||
      hasImageFormat(members?.get('responseFormat')) ||
      hasImageFormat(members?.get('response_format')))
  );
}

/** @param format JSON text of `responseFormat`: one object, or a list of them */
function hasImageFormat(format = 'null'): boolean {
  const parsed = parseJson(format);
  const formats: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  return formats.some((each) => isObject(each) && isObject(each.image));
}

const ofConfig: ReadonlySet<string> = new Set([
  'responseFormat',
  'response_format',
  'responseModalities',
  'response_modalities',
  'imageConfig',
  'image_config',
]);

/** @param modalities JSON text of the requested kinds of output */
function drawsOrFilms(modalities = '[]'): boolean {
  const names = parseJson(modalities);
  return (
    Array.isArray(names) && names.some((name) => typeof name === 'string' && /^(?:image|video)$/i.test(name))
  );
}

function hasActingTool(tools = '[]'): boolean {
  const list = parseJson(tools);
  const acts = (tool: unknown): boolean =>
    isObject(tool) &&
    actingTools.some((start) => typeof tool.type === 'string' && tool.type.startsWith(start));
  return Array.isArray(list) && list.some(acts);
}

function membersOf(body: readonly Buffer[], names: ReadonlySet<string>): ReadonlyMap<string, string> | null {
  const [first] = body;
  const whole = body.length === 1 && first !== undefined ? first : Buffer.concat(body);
  return withoutMembers(whole, names)?.taken ?? null;
}
