import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest } from '../request.js';
import { leaveOut, type Setting, settings } from '../setting-names.js';
import { signatureFor } from '../signature.js';
import type { Fitted } from './fitted.js';

/** Tells what the target's protocol has no member for: its encoder passes that over. */
export function fitSettings(
  request: ConversationRequest,
  rules: RequestRules,
  { hostedTools }: TargetOptions,
  leftOut: LeftOut,
): Fitted {
  for (const setting of settings) {
    if (rules.settings.has(setting)) continue;
    if (setting === 'serving') for (const name of Object.keys(request.serving ?? {})) leftOut.add(name);
    else if (isSet(request, setting)) leaveOut(request, setting, leftOut);
  }
  if (hostedTools === 'drop') for (const tool of request.hostedTools) leftOut.add(nameOf(tool));
  if (losesReasoning(request, rules)) leaveOut(request, 'signature', leftOut);
  if (rules.settings.has('serving') === false && request.stored === true) leftOut.add('store');
  return { request, restorer: null };
}

/** Where it stood, and its type: `tools.web_search`. */
function nameOf({ type, at }: ConversationRequest['hostedTools'][number]): string {
  const [list = ''] = at.split('[', 1);
  return list === type ? type : `${list}.${type}`;
}

/** An upstream takes no reasoning but what is signed by its own vendor. */
function losesReasoning({ turns }: ConversationRequest, { signatures }: RequestRules): boolean {
  return turns.some(
    (turn) =>
      turn.role === 'assistant' &&
      turn.parts.some(
        (part) =>
          part.kind === 'reasoning' &&
          (signatures === null || signatureFor(signatures, part.signature) === null),
      ),
  );
}

/** Says more than the setting's default does. */
function isSet(request: ConversationRequest, setting: Exclude<Setting, 'serving'>): boolean {
  switch (setting) {
    case 'strict':
      return request.tools.some(({ strict }) => strict === true);
    case 'detail':
      return request.turns.some(
        (turn) =>
          turn.role === 'user' && turn.parts.some((part) => part.kind === 'image' && isDetail(part.detail)),
      );
    case 'parallelCalls':
      return request.parallelCalls === false;
    case 'presencePenalty':
    case 'frequencyPenalty':
      return (request[setting] ?? 0) !== 0;
    default:
      return request[setting] !== null;
  }
}

function isDetail(detail: string | null): boolean {
  return detail !== null && detail !== 'auto';
}
