import type { ConversationRequest, Turn } from '../request.js';
import type { FitContext, Fitted } from './fitted.js';

const instruction = 'Answer with a single valid JSON object.';
const word = /json/i;

/**
 * OpenAI refuses to answer with just any JSON object where no message has that word, and in responses the instructions
 * are none (https://platform.openai.com/docs/guides/structured-outputs#json-mode). Other vendors do not ask for it.
 * What comes after the first turn of the user does not count: a conversation's next turn is to begin as this one.
 */
export function fitJsonWord(request: ConversationRequest, { rules }: FitContext): Fitted | null {
  if (rules.jsonWord === null || request.format?.kind !== 'object') return null;
  // A client of the vendor's own is told so by the vendor.
  if (request.from === rules.protocol) return null;
  const { system, turns } = request;
  if (rules.jsonWord === 'anywhere') {
    const isSaid = system.some((text) => word.test(text)) || isSaidFirst(turns);
    return isSaid ? null : { request: { ...request, system: [...system, instruction] }, restorer: null };
  }
  if (isSaidFirst(turns)) return null;
  return {
    request: { ...request, turns: [{ role: 'system', text: instruction }, ...turns] },
    restorer: null,
  };
}

function isSaidFirst(turns: readonly Turn[]): boolean {
  for (const turn of turns) {
    const texts = turn.role === 'system' ? [turn] : turn.parts;
    if (texts.some((part) => 'text' in part && word.test(part.text))) return true;
    if (turn.role === 'user') return false;
  }
  return false;
}
