import { clientTraitsOf } from '../client-traits.js';
import type { RequestRules } from '../codec.js';
import type { AssistantPart, ConversationRequest, Turn, UserPart } from '../request.js';
import type { FitContext, Fitted } from './fitted.js';

/* What turns a request may begin and end with. */

/** Stands for what a shortened history has lost. */
const filler: Turn = { role: 'user', parts: [{ kind: 'text', text: '(The conversation begins here.)' }] };

/**
 * A history that was shortened may begin with the assistant, which the messages API refuses
 * (https://platform.claude.com/docs/en/api/messages: the first message is the user's), and generateContent where it
 * begins with a call (a function call has to follow a turn of the user). Instructions without a turn are answered by
 * OpenAI's chat API, and refused by the three others.
 */
export function fitFirstTurn(request: ConversationRequest, { rules }: FitContext): Fitted | null {
  const { firstTurn } = rules;
  const wanting =
    isSilent(request, rules) || (firstTurn !== 'any' && lacksUser(request.turns, firstTurn === 'noCall'));
  return wanting ? { request: { ...request, turns: [filler, ...request.turns] }, restorer: null } : null;
}

/**
 * Nothing of the turns would be written, by a client whose vendor takes that, for a vendor who does not. What a model has
 * thought is no conversation: it is written for its own vendor alone, and not always there.
 */
function isSilent(request: ConversationRequest, { firstTurn, instructionsAlone }: RequestRules): boolean {
  if (!clientTraitsOf(request).mayBeSilent) return false;
  if (instructionsAlone && request.system.some((text) => text !== '')) return false;
  const isWritten = { any: () => true, noCall: isNotEmpty, user: saysSomething }[firstTurn];
  return request.turns.every((turn) =>
    turn.role === 'system'
      ? isBlank(turn.text)
      : !turn.parts.some((part) => part.kind !== 'reasoning' && isWritten(part)),
  );
}

/** @param inCalls the assistant may begin with anything but a call, and blank texts are written, too */
function lacksUser(turns: readonly Turn[], inCalls: boolean): boolean {
  const isWritten = inCalls ? isNotEmpty : saysSomething;
  for (const turn of turns) {
    if (turn.role === 'assistant') {
      if (inCalls ? turn.parts.some(({ kind }) => kind === 'toolCall') : turn.parts.some(saysSomething))
        return true;
    } else if (turn.role === 'system' ? !isBlank(turn.text) : turn.parts.some(isWritten)) return false;
  }
  return false;
}

function isNotEmpty(part: AssistantPart | UserPart): boolean {
  return (part.kind !== 'text' && part.kind !== 'refusal') || part.text !== '';
}

/** Parts that no encoder writes say nothing. */
function saysSomething(part: AssistantPart | UserPart): boolean {
  if (part.kind === 'text' || part.kind === 'refusal') return !isBlank(part.text);
  return part.kind !== 'reasoning' || part.signature !== null;
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

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
