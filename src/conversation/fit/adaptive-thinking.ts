import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, TextProtocolName } from '../request.js';
import type { Fitted } from './fitted.js';

type SamplingSetting = 'temperature' | 'topP' | 'topK';

/** What clients call the settings; a protocol without one cannot ask for it. */
const names: Readonly<Record<TextProtocolName, Readonly<Record<SamplingSetting, string>>>> = {
  chat: { temperature: 'temperature', topP: 'top_p', topK: 'top_k' },
  responses: { temperature: 'temperature', topP: 'top_p', topK: 'top_k' },
  messages: { temperature: 'temperature', topP: 'top_p', topK: 'top_k' },
  generateContent: {
    temperature: 'generationConfig.temperature',
    topP: 'generationConfig.topP',
    topK: 'generationConfig.topK',
  },
};

/**
 * Models that adapt their thinking refuse settings of sampling with a 400, whether they think or not
 * (https://platform.claude.com/docs/en/about-claude/models/migration-guide).
 */
export function fitAdaptiveThinking(
  request: ConversationRequest,
  { adaptiveThinking }: RequestRules,
  target: TargetOptions,
  leftOut: LeftOut,
): Fitted {
  const { temperature, topP, topK, from } = request;
  if (!adaptiveThinking || !target.adaptiveThinking) return { request, restorer: null };
  if (temperature === null && topP === null && topK === null) return { request, restorer: null };
  if (temperature !== null) leftOut.add(names[from].temperature);
  if (topP !== null) leftOut.add(names[from].topP);
  if (topK !== null) leftOut.add(names[from].topK);
  return { request: { ...request, temperature: null, topP: null, topK: null }, restorer: null };
}
