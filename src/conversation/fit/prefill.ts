import type { AssistantPart, ConversationRequest, Turn } from '../request.js';
import type { FitContext, Fitted } from './fitted.js';

const goOn: Turn = {
  role: 'user',
  parts: [
    {
      kind: 'text',
      text: 'Go on exactly where your last message ends. Do not repeat any of it, and add nothing before it.',
    },
  ],
};

/**
 * Some upstreams do not go on with an answer that is begun in the request: they are asked to. The responses API takes a
 * last message of the assistant and answers anew; the newest models of the messages API refuse it
 * (https://platform.claude.com/docs/en/about-claude/models/migration-guide, "Prefill removal").
 */
export function fitPrefill(
  request: ConversationRequest,
  { rules: { prefill }, options: { thinking } }: FitContext,
): Fitted | null {
  const isTaken = prefill === 'always' || (prefill === 'option' && thinking !== 'adaptive');
  const last = request.turns.at(-1);
  if (isTaken || last?.role !== 'assistant' || !last.parts.some(isBegun)) return null;
  return { request: { ...request, turns: [...request.turns, goOn] }, restorer: null };
}

/** What is blank is no beginning of an answer. */
function isBegun(part: AssistantPart): boolean {
  return part.kind !== 'reasoning' && (!('text' in part) || part.text.trim() !== '');
}
