/**
 * Which requests make or keep something at an upstream of the protocol itself, so that they are not sent a second time
 * once any of them has left. They are asked about a body only when something has gone wrong.
 */
import { isObject, parseJson } from '../wire/json.js';
import { withoutMembers } from '../wire/json-members.js';

/** @param body in pieces, as it is sent */
export type OnceRule = (body: readonly Buffer[]) => boolean;

/** What costs again, and does no other harm. */
export const never: OnceRule = () => false;

/** What makes something each time. */
export const always: OnceRule = () => true;

const ofChat: ReadonlySet<string> = new Set(['store', 'modalities']);
const ofResponses: ReadonlySet<string> = new Set(['store', 'background', 'conversation', 'tools']);
const ofGenerateContent: ReadonlySet<string> = new Set(['store', 'generationConfig', 'generation_config']);

/** Chat: what is kept at the upstream where the body asks for it, and images. */
export const chatOnce: OnceRule = (body) => {
  const members = membersOf(body, ofChat);
  return isGiven(members?.get('store')) || namesImage(members?.get('modalities'));
};

/** Responses: all that the body does not say is not to be kept, and images. */
export const responsesOnce: OnceRule = (body) => {
  const members = membersOf(body, ofResponses);
  return (
    members?.get('store') !== 'false' ||
    isGiven(members.get('background')) ||
    isGiven(members.get('conversation')) ||
    hasImageTool(members.get('tools'))
  );
};

/** generateContent: as in chat, in its words. */
export const generateContentOnce: OnceRule = (body) => {
  const members = membersOf(body, ofGenerateContent);
  return (
    isGiven(members?.get('store')) ||
    drawsImages(members?.get('generationConfig')) ||
    drawsImages(members?.get('generation_config'))
  );
};

function isGiven(value: string | undefined): boolean {
  return value !== undefined && value !== 'null' && value !== 'false';
}

function drawsImages(config: string | undefined): boolean {
  const members = membersOf([Buffer.from(config ?? '')], ofConfig);
  return namesImage(members?.get('responseModalities')) || namesImage(members?.get('response_modalities'));
}

const ofConfig: ReadonlySet<string> = new Set(['responseModalities', 'response_modalities']);

/** @param modalities JSON text of the kinds of output that are asked for */
function namesImage(modalities = '[]'): boolean {
  const names = parseJson(modalities);
  return Array.isArray(names) && names.some((name) => typeof name === 'string' && /^image$/i.test(name));
}

function hasImageTool(tools = '[]'): boolean {
  const list = parseJson(tools);
  return Array.isArray(list) && list.some((tool) => isObject(tool) && tool.type === 'image_generation');
}

function membersOf(body: readonly Buffer[], names: ReadonlySet<string>): ReadonlyMap<string, string> | null {
  return withoutMembers(body.length === 1 ? (body[0] as Buffer) : Buffer.concat(body), names)?.taken ?? null;
}
