import type { TextProtocolName } from '../conversation/request.js';
import { chat } from './chat/index.js';
import type { TextEndpoint } from './endpoint.js';
import { generateContent } from './generate-content/index.js';
import { messages } from './messages/index.js';
import { responses } from './responses/index.js';

/** The endpoints between which conversations can be translated. */
export const textEndpoints: Readonly<Record<TextProtocolName, TextEndpoint>> = {
  chat,
  responses,
  messages,
  generateContent,
};

/**
 * Compiles the checks of translated bodies in advance. It takes tens of milliseconds, which no call should have to wait
 * for.
 */
export function compileTranslationChecks(): void {
  for (const { translation } of Object.values(textEndpoints)) translation.schema.check(null);
}
