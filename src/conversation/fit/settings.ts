import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest } from '../request.js';
import { leaveOut, type Setting, settings } from '../setting-names.js';
import type { Fitted } from './fitted.js';

/** Tells which settings the target's protocol has no member for: its encoder passes them over. */
export function fitSettings(
  request: ConversationRequest,
  rules: RequestRules,
  _target: TargetOptions,
  leftOut: LeftOut,
): Fitted {
  for (const setting of settings) {
    if (rules.settings.has(setting)) continue;
    if (setting === 'serving') for (const name of Object.keys(request.serving ?? {})) leftOut.add(name);
    else if (isSet(request, setting)) leaveOut(request, setting, leftOut);
  }
  return { request, restorer: null };
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
