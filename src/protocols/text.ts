import type { TextProtocolName } from '../conversation/request.js';
import { chat } from './chat/index.js';
import type { Endpoint, Translation } from './endpoint.js';
import { generateContent } from './generate-content/index.js';
import { messages } from './messages/index.js';
import { responses } from './responses/index.js';

/** An endpoint whose calls can be translated. */
export interface TextEndpoint extends Endpoint {
  readonly translation: Translation;
}

/** The endpoints between which a conversation can be translated. */
export const textEndpoints: Readonly<Record<TextProtocolName, TextEndpoint>> = {
  chat: translatable(chat),
  responses: translatable(responses),
  messages: translatable(messages),
  generateContent: translatable(generateContent),
};

function translatable(endpoint: Endpoint): TextEndpoint {
  const { translation } = endpoint;
  if (translation === null) throw new Error(`${endpoint.protocol} has no codec`);
  return { ...endpoint, translation };
}

/** Compiles the checks of bodies that are translated: some tens of milliseconds, for which no call should wait. */
export function compileTranslationChecks(): void {
  for (const { translation } of Object.values(textEndpoints)) translation.schema.check(null);
}
