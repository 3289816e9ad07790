import type { RequestRules } from '../codec.js';
import type { ConversationRequest, HostedTool, ReasoningPart } from '../request.js';
import { isSetByClient, leaveOut, type Setting } from '../setting-names.js';
import { isOfVendor, signatureFor } from '../signature.js';
import type { FitContext, Fitted } from './fitted.js';

/** Records settings for which the target's protocol has no member. Its encoder ignores them. */
export function fitSettings(
  request: ConversationRequest,
  { rules, options: { hostedTools, topK }, leftOut }: FitContext,
): Fitted | null {
  const takesTopK = rules.topK === 'always' || (rules.topK === 'option' && topK);
  if (request.topK !== null && !takesTopK) leaveOut(request, 'topK', leftOut);
  for (const setting of rules.lacks) {
    if (setting === 'serving') for (const name of Object.keys(request.serving ?? {})) leftOut.add(name);
    else if (isSet(request, setting)) leaveOut(request, setting, leftOut);
  }
  if (hostedTools === 'drop') for (const tool of request.hostedTools) leftOut.add(nameOf(tool));
  if (losesReasoning(request, rules)) leaveOut(request, 'signature', leftOut);
  if (rules.lacks.includes('serving') && request.stored === true) leftOut.add('store');
  return null;
}

/** The list that contains the tool, and its type: `tools.web_search`. */
function nameOf({ type, at }: HostedTool): string {
  const [list = ''] = at.split(/[.[]/, 1);
  return list === type ? type : `${list}.${type}`;
}

/**
 * An upstream only accepts reasoning that its own vendor signed. Text and signature may be separate parts, so a turn
 * counts if all of its reasoning is lost. Unsigned reasoning before a finished answer does not count, since no upstream
 * asks for it.
 */
function losesReasoning({ turns }: ConversationRequest, { protocol }: RequestRules): boolean {
  return turns.some((turn) => {
    if (turn.role !== 'assistant') return false;
    const reasoning = turn.parts.filter((part) => part.kind === 'reasoning');
    const isKept = (part: ReasoningPart) => signatureFor(protocol, part.signature) !== null;
    const isWanted =
      turn.parts.some(({ kind }) => kind === 'toolCall') ||
      reasoning.some(({ signature }) => isOfVendor(signature));
    return reasoning.length > 0 && isWanted && !reasoning.some(isKept);
  });
}

/** Returns whether a setting differs from its default. */
function isSet(request: ConversationRequest, setting: Setting): boolean {
  switch (setting) {
    case 'parallelCalls':
      return request.parallelCalls === false;
    case 'presencePenalty':
    case 'frequencyPenalty':
      return (request[setting] ?? 0) !== 0;
    default:
      return isSetByClient(request, setting);
  }
}
