import { clientTraitsOf } from '../client-traits.js';
import type { RequestRules } from '../codec.js';
import type { AssistantPart, ConversationRequest, Turn, UserPart } from '../request.js';
import type { FitContext, Fitted } from './fitted.js';

/*
 * The turns with which a request may begin and end.
 */

/** Replaces what a shortened history has lost. */
const filler: Turn = { role: 'user', parts: [{ kind: 'text', text: '(The conversation begins here.)' }] };

/**
 * A shortened history may begin with the assistant. The messages API refuses that
 * (https://platform.claude.com/docs/en/api/messages: the first message is the user's). So does generateContent if the
 * turn begins with a call (a function call must follow a turn of the user). OpenAI's chat API accepts instructions
 * without a turn; the three others refuse them.
 */
export function fitFirstTurn(request: ConversationRequest, { rules }: FitContext): Fitted | null {
  const { firstTurn } = rules;
  const wanting =
    isSilent(request, rules) || (firstTurn !== 'any' && lacksUser(request.turns, firstTurn === 'noCall'));
  return wanting ? { request: { ...request, turns: [filler, ...request.turns] }, restorer: null } : null;
}

/**
 * Returns whether the turns would be written as nothing, for a client whose vendor accepts that and a target whose
 * vendor does not. Reasoning does not count as content: it is only written for its own vendor, and not always.
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

/** @param inCalls the assistant may begin with anything but a call, and blank texts are written as well */
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

/** Parts that no encoder writes have no content. */
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
 * Some upstreams do not continue an answer that the request has begun, so they are told to. The responses API accepts a
 * last message of the assistant but starts a new answer. The newest models of the messages API refuse it
 * (https://platform.claude.com/docs/en/about-claude/models/migration-guide, "Prefill removal"), also if a blank text
 * of the user follows, which is not written.
 */
export function fitPrefill(
  request: ConversationRequest,
  { rules: { prefill, firstTurn }, options: { thinking } }: FitContext,
): Fitted | null {
  const isTaken = prefill === 'always' || (prefill === 'option' && thinking !== 'adaptive');
  if (isTaken) return null;
  const last = request.turns.findLast((turn) => isWritten(turn, firstTurn === 'user'));
  if (last?.role !== 'assistant') return null;
  return { request: { ...request, turns: [...request.turns, goOn] }, restorer: null };
}

/**
 * Whether a turn reaches the upstream with content.
 * @param mustSay turns of the user without content, and blank instructions, are not written
 */
function isWritten(turn: Turn, mustSay: boolean): boolean {
  if (turn.role === 'assistant') return turn.parts.some(isBegun);
  if (!mustSay) return true;
  return turn.role === 'system' ? !isBlank(turn.text) : turn.parts.some(saysSomething);
}

/** A blank text is not the beginning of an answer. */
function isBegun(part: AssistantPart): boolean {
  return part.kind !== 'reasoning' && (!('text' in part) || part.text.trim() !== '');
}
